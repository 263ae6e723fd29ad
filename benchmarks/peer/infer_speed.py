"""Inference speed of an ONNX model in ONNX Runtime or OpenVINO, as one line of JSON.

The peer of `weft infer --repeat`. Latency: one sample at a time, all threads work on it. Throughput: batches, by all threads
together, or (--streams) by as many batches at once, each on its share of the threads. --precision int8 quantizes the model by
the peer's own tool first: ONNX Runtime's quantize_static (QDQ, per channel), NNCF's quantize(); by drawn samples, since the
speed does not depend on them, nor on the weights' 7 bits that ONNX Runtime's accuracy wants on processors without VNNI. The
quantized file is kept beside the model.

`grown_bytes` is by how much the process grew at most since its libraries were loaded, just before it read the model.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import statistics
import threading
import time

import numpy


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["onnxruntime", "openvino"])
    parser.add_argument("model", type=pathlib.Path, help="ONNX file with one input")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--precision", choices=["f32", "bf16", "int8"], default="f32")
    parser.add_argument("--rest", choices=["f32", "bf16"], default="f32", help="what int8 leaves real computes in (OpenVINO)")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    return parser.parse_args()


def drawn_input(shape, dtype, tokens, batch, seed=0):
    """Pixels about zero, or tokens."""
    sizes = [batch if not isinstance(size, int) or size < 1 else size for size in shape]
    random = numpy.random.default_rng(seed)
    if numpy.issubdtype(dtype, numpy.integer):
        return random.integers(0, tokens, sizes).astype(dtype)
    return random.standard_normal(sizes).astype(dtype)


class Growth:
    """Of this process's resident memory since begin()."""

    def __init__(self):
        self.before = 0

    @staticmethod
    def status(key):
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key + ":"))

    def begin(self):
        pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
        self.before = self.status("VmRSS")

    def most(self):
        return self.status("VmHWM") - self.before


def in_child(function, *words):
    """What it reads and frees is no part of this process's memory, and what it prints none of its output."""
    with multiprocessing.get_context("spawn").Pool(1, initializer=os.dup2, initargs=(2, 1)) as pool:
        return pool.apply(function, words)


def input_of(path):
    """Name, shape and dtype of the model's input."""
    import onnx

    value = onnx.load(path, load_external_data=False).graph.input[0]
    tensor = value.type.tensor_type
    shape = [dim.dim_value or dim.dim_param for dim in tensor.shape.dim]
    return value.name, shape, numpy.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))


def quantized_by_onnxruntime(path, name, shape, dtype):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Samples(CalibrationDataReader):
        def __init__(self):
            self.left = [{name: drawn_input(shape, dtype, 10, 1, seed)} for seed in range(8)]

        def get_next(self):
            return self.left.pop() if self.left else None

    result = path.with_suffix(".ort_int8.onnx")
    if not result.exists():
        prepared = path.with_suffix(".prepared.onnx")
        quant_pre_process(path, prepared, skip_symbolic_shape=True)
        quantize_static(prepared, result, Samples(), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return result


def quantized_by_nncf(path, name, shape, dtype):
    import nncf
    import openvino

    result = path.with_suffix(".nncf_int8.xml")
    if not result.exists():
        samples = [{name: drawn_input(shape, dtype, 10, 1, seed)} for seed in range(8)]
        model = nncf.quantize(openvino.Core().read_model(path), nncf.Dataset(samples), subset_size=8)
        openvino.save_model(model, result, compress_to_fp16=False)
    return result


def onnxruntime_runner(arguments, name, shape, dtype, growth):
    import onnxruntime

    path = arguments.model
    if arguments.precision == "int8":
        path = in_child(quantized_by_onnxruntime, path, name, shape, dtype)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads // arguments.streams
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    growth.begin()
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feed = {name: drawn_input(shape, dtype, 10, arguments.batch)}

    def run_for(seconds):
        times, end = [], time.perf_counter() + seconds
        while (begin := time.perf_counter()) < end or len(times) < 3:
            session.run(None, feed)
            times.append(time.perf_counter() - begin)
        return times

    return run_for, f"onnxruntime {onnxruntime.__version__}"


def openvino_runner(arguments, name, shape, dtype, growth):
    import openvino

    path = arguments.model
    if arguments.precision == "int8":
        path = in_child(quantized_by_nncf, path, name, shape, dtype)
    core = openvino.Core()
    growth.begin()
    model = core.read_model(path)
    data = drawn_input(shape, dtype, 10, arguments.batch)
    model.reshape({name: list(data.shape)})
    compiled = core.compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY" if arguments.streams == 1 else "THROUGHPUT", "NUM_STREAMS": arguments.streams,
        "INFERENCE_NUM_THREADS": arguments.threads,
        "INFERENCE_PRECISION_HINT": arguments.rest if arguments.precision == "int8" else arguments.precision})

    def run_for(seconds):
        request = compiled.create_infer_request()
        times, end = [], time.perf_counter() + seconds
        while (begin := time.perf_counter()) < end or len(times) < 3:
            request.infer({name: data}, share_inputs=True)
            times.append(time.perf_counter() - begin)
        return times

    return run_for, f"openvino {openvino.__version__}"


def main():
    arguments = parse_arguments()
    name, shape, dtype = in_child(input_of, arguments.model)
    make = onnxruntime_runner if arguments.peer == "onnxruntime" else openvino_runner
    growth = Growth()
    run_for, version = make(arguments, name, shape, dtype, growth)
    run_for(min(1.0, arguments.seconds))  # warm
    results = [[] for _ in range(arguments.streams)]

    def work(stream):
        results[stream] = run_for(arguments.seconds)

    begin = time.perf_counter()
    workers = [threading.Thread(target=work, args=(stream,)) for stream in range(arguments.streams)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - begin
    runs = [run for result in results for run in result]
    print(json.dumps({"framework": version, "samples_per_second": arguments.batch * len(runs) / seconds,
                      "median_ms": 1000 * statistics.median(runs), "grown_bytes": growth.most()}))


if __name__ == "__main__":
    main()
