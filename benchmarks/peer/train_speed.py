"""Training (or forward) speed of a model in PyTorch on synthetic input, as one line of JSON.

The peer of `weft bench`: median step time over the measured steps, warm-up excluded. PyTorch is at its best in another
setting for each network: --channels-last or not, --compile or not. benchmarks/peer_settings.py finds it.
"""

import argparse
import json
import os
import statistics
import time


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--input", default="3,224,224", help="C,H,W of an image, or T of a token sequence")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--classes", type=int, default=10, help="or the vocabulary")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--channels-last", action="store_true", help="NHWC instead of NCHW in memory")
    parser.add_argument("--compile", action="store_true", help="model and loss through torch.compile")
    parser.add_argument("--bf16", action="store_true", help="autocast to bf16, as torch.autocast does it on CPUs")
    parser.add_argument("--forward", action="store_true", help="inference, traced and frozen, instead of training")
    parser.add_argument("--steps", type=int, default=10, help="to measure, at least")
    parser.add_argument("--seconds", type=float, default=0, help="to measure, at least")
    parser.add_argument("--warm-up", type=int, default=3, help="steps before the measured ones")
    parser.add_argument("--optimizer", choices=["foreach", "fused"], default="foreach", help="its implementation")
    parser.add_argument("--adamw", action="store_true", help="AdamW in place of SGD")
    parser.add_argument("--rank", type=int, default=0, help="of --ranks processes that train together; the first one prints")
    parser.add_argument("--ranks", type=int, default=1, help="over Gloo; --batch is each one's own, but for a pipeline's")
    parser.add_argument("--strategy", choices=["ddp", "fsdp", "pipeline"], default="ddp", help="of several ranks: "
                        "DistributedDataParallel, FSDP2 (fully_shard of each block), or torch.distributed.pipelining")
    parser.add_argument("--micro-batches", type=int, default=4, help="of the pipeline")
    parser.add_argument("--schedule", choices=list(PIPELINE_SCHEDULES), default="1f1b", help="of the pipeline")
    parser.add_argument("--meet", help="a file that is not there yet, by which the ranks find each other")
    parser.add_argument("--compress", choices=["none", "f16"], default="none", help="gradients on their way to other ranks")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option of the model")
    return parser.parse_args()


def parse_options(settings):
    pairs = (setting.split("=", 1) for setting in settings)
    return {key: int(value) if value.isdigit() else value for key, value in pairs}


def meet_others(arguments):
    import torch.distributed

    torch.distributed.init_process_group("gloo", init_method=f"file://{os.path.abspath(arguments.meet)}",
                                         rank=arguments.rank, world_size=arguments.ranks)


def distribute(model, arguments):
    """The model as one of several ranks. Buckets as views of the gradients spare DDP a copy of each."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.nn.parallel import DistributedDataParallel

    meet_others(arguments)
    if arguments.strategy == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (arguments.ranks,))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)
    model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    if arguments.compress == "f16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    return model


def make_optimizer(model, arguments):
    import models
    import torch

    options = {arguments.optimizer: True}
    if arguments.adamw:
        return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, **options)
    return models.make_sgd(model, 0.01, momentum=0.9, weight_decay=5e-4, **options)


# By name: the class, how many stages each rank has, and whether they lie in a V (the last stage on the first rank).
PIPELINE_SCHEDULES = {
    "gpipe": ("ScheduleGPipe", 1, False),
    "1f1b": ("Schedule1F1B", 1, False),
    "interleaved": ("ScheduleInterleaved1F1B", 2, False),
    "interleaved_zero_bubble": ("ScheduleInterleavedZeroBubble", 2, False),
    "zbv": ("ScheduleZBVZeroBubble", 2, True),
    "dual_v": ("ScheduleDualPipeV", 2, True),
}


def stages_of(schedule, blocks, rank, ranks):
    """Of a rank: the number of each of its stages, and the blocks it has. All ranks have as many blocks."""
    _, chunks, is_v = PIPELINE_SCHEDULES[schedule]
    owners = {}
    for owner in range(ranks):
        for chunk in range(chunks):
            number = 2 * ranks - 1 - owner if is_v and chunk == 1 else chunk * ranks + owner
            owners[number] = (owner, blocks // ranks // chunks + (chunk < blocks // ranks % chunks))
    begin, own = 0, []
    for number in range(chunks * ranks):
        owner, count = owners[number]
        if owner == rank:
            own.append((number, range(begin, begin + count)))
        begin += count
    return own, chunks * ranks


class Pipeline:
    """A rank's stages of a transformer_lm, run by torch.distributed.pipelining. The outer stages have the model's ends."""

    def __init__(self, model, x, labels, arguments, autocast):
        import torch
        from torch import nn
        from torch.distributed import pipelining

        class Part(nn.Module):
            def __init__(self, blocks, is_first, is_last):
                super().__init__()
                self.is_first, self.is_last = is_first, is_last
                self.blocks = nn.ModuleList(model.blocks[block] for block in blocks)
                self.register_buffer("mask", model.mask)
                if is_first:
                    self.tok_emb, self.pos_emb = model.tok_emb, model.pos_emb
                if is_last:
                    self.ln_f, self.head = model.ln_f, model.head

            def forward(self, values):
                with autocast():
                    if self.is_first:
                        values = self.tok_emb(values) + self.pos_emb.weight[:values.shape[1]]
                    for block in self.blocks:
                        values = block(values, self.mask)
                    return self.head(self.ln_f(values)) if self.is_last else values

        def loss_of(logits, targets):
            return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

        meet_others(arguments)
        own, stages = stages_of(arguments.schedule, len(model.blocks), arguments.rank, arguments.ranks)
        self.parts = nn.ModuleList(Part(blocks, number == 0, number + 1 == stages) for number, blocks in own)
        self.x, self.labels = x, labels.view(x.shape)
        self.has_first = any(part.is_first for part in self.parts)
        self.has_last = any(part.is_last for part in self.parts)
        made = [pipelining.PipelineStage(part, number, stages, torch.device("cpu")) for part, (number, _) in zip(self.parts, own)]
        name, chunks, _ = PIPELINE_SCHEDULES[arguments.schedule]
        self.schedule = getattr(pipelining.schedules, name)(made[0] if chunks == 1 else made, arguments.micro_batches, loss_fn=loss_of)

    def step(self):
        inputs = (self.x,) if self.has_first else ()
        if self.has_last:
            self.schedule.step(*inputs, target=self.labels, losses=[])
        else:
            self.schedule.step(*inputs)


def status_bytes(key):
    """Of this process, such as VmRSS, what is resident now, or VmHWM, the most that was."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))


def main():
    arguments = parse_arguments()
    # Both pools read these when their library is loaded.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(arguments.threads)
    import torch

    import models

    torch.set_num_threads(arguments.threads)
    with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
        clear.write("5")  # the high-water mark starts anew, proc(5)
    resident_bytes = status_bytes("VmRSS")
    torch.manual_seed(0)
    shape = [int(part) for part in arguments.input.split(",")]
    model = models.build(arguments.model, shape, arguments.classes, **parse_options(arguments.set))
    if len(shape) == 1:
        x = torch.randint(arguments.classes, (arguments.batch, *shape))
    else:
        x = torch.randn(arguments.batch, *shape)
    if arguments.channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)

    def autocast():
        return torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.bf16, cache_enabled=not arguments.forward)

    if arguments.forward:
        with torch.inference_mode(), autocast():
            frozen = torch.jit.freeze(torch.jit.trace(model.eval(), x))

        def step():
            with torch.inference_mode(), autocast():
                frozen(x)

    else:
        labels = torch.randint(arguments.classes, (arguments.batch * models.label_count(model, shape),))
        is_pipeline = arguments.ranks > 1 and arguments.strategy == "pipeline"
        if is_pipeline:
            pipeline = Pipeline(model, x, labels, arguments, autocast)
            model = pipeline.parts
        elif arguments.ranks > 1:
            model = distribute(model, arguments)
        optimizer = make_optimizer(model, arguments)
        loss_of = torch.compile(models.loss_of) if arguments.compile else models.loss_of

        def step():
            optimizer.zero_grad(set_to_none=True)
            if is_pipeline:
                pipeline.step()
            else:
                with autocast():
                    loss = loss_of(model, x, labels)
                loss.backward()
            optimizer.step()

    for _ in range(arguments.warm_up):
        step()
    seconds = []
    while len(seconds) < arguments.steps or sum(seconds) < arguments.seconds:
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    if arguments.rank > 0:
        return
    median = statistics.median(seconds)
    result = {
        "framework": f"pytorch {torch.__version__}",
        "model": arguments.model,
        "input": shape,
        "batch": arguments.batch * arguments.ranks,
        "ranks": arguments.ranks,
        "threads": arguments.threads,
        "channels_last": arguments.channels_last,
        "bf16": arguments.bf16,
        "compiled": arguments.compile,
        "forward": arguments.forward,
        "parameters": sum(p.numel() for p in model.parameters()),
        "steps": len(seconds),
        "step_seconds": median,
        "images_per_second": arguments.batch * arguments.ranks / median,
        "resident_bytes_after_import": resident_bytes,
        "rss_growth_bytes": status_bytes("VmHWM") - resident_bytes,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
