"""What an ONNX model gives in ONNX Runtime or OpenVINO, in f32 or quantized by the peer's own tool, as NumPy's file.

The peer of `weft quantize` in benchmarks/quantization_accuracy.py. --calibration names samples, of which as many as --samples
says are taken, evenly spaced. ONNX Runtime: quant_pre_process and quantize_static (QDQ, per channel; with --weight-bits 7
for processors without VNNI, where its products of bytes would saturate); OpenVINO: NNCF's quantize(), told where the model is a
transformer.
"""

import argparse
import pathlib
import tempfile

import numpy


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["onnxruntime", "openvino"])
    parser.add_argument("model", type=pathlib.Path, help="ONNX file in f32 with one input")
    parser.add_argument("--precision", choices=["f32", "int8"], default="int8")
    parser.add_argument("--calibration", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--weight-bits", type=int, choices=[8, 7], default=8, help="of ONNX Runtime's quantizer")
    parser.add_argument("--rest", choices=["f32", "bf16"], default="f32", help="what int8 leaves real computes in (OpenVINO)")
    parser.add_argument("--transformer", action="store_true")
    parser.add_argument("--input", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def calibration_samples(arguments):
    samples = numpy.load(arguments.calibration, mmap_mode="r")
    chosen = numpy.unique(numpy.linspace(0, len(samples) - 1, arguments.samples).astype(int))
    return [numpy.ascontiguousarray(samples[index:index + 1]) for index in chosen]


def quantized_by_onnxruntime(arguments, name, dtype, folder):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Samples(CalibrationDataReader):
        def __init__(self):
            self.left = [{name: sample.astype(dtype)} for sample in calibration_samples(arguments)]

        def get_next(self):
            return self.left.pop() if self.left else None

    prepared, result = folder / "prepared.onnx", folder / "int8.onnx"
    quant_pre_process(arguments.model, prepared, skip_symbolic_shape=True)
    quantize_static(prepared, result, Samples(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, reduce_range=arguments.weight_bits == 7)
    return result


def onnxruntime_outputs(arguments, folder):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    session = onnxruntime.InferenceSession(str(arguments.model), options, providers=["CPUExecutionProvider"])
    value = session.get_inputs()[0]
    dtype = {"tensor(float)": numpy.float32, "tensor(int32)": numpy.int32, "tensor(int64)": numpy.int64}[value.type]
    if arguments.precision == "int8":
        path = quantized_by_onnxruntime(arguments, value.name, dtype, folder)
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda batch: session.run(None, {value.name: batch.astype(dtype)})[0]


def openvino_outputs(arguments, _):
    import nncf
    import openvino

    core = openvino.Core()
    model = core.read_model(arguments.model)
    port = model.inputs[0]
    dtype = port.get_element_type().to_dtype()
    if arguments.precision == "int8":
        samples = [{port.get_any_name(): sample.astype(dtype)} for sample in calibration_samples(arguments)]
        extra = {"model_type": nncf.ModelType.TRANSFORMER} if arguments.transformer else {}
        model = nncf.quantize(model, nncf.Dataset(samples), subset_size=len(samples), **extra)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": arguments.threads, "INFERENCE_PRECISION_HINT": arguments.rest})
    return lambda batch: compiled([batch.astype(dtype)])[0]


def main():
    arguments = parse_arguments()
    inputs = numpy.load(arguments.input, mmap_mode="r")
    with tempfile.TemporaryDirectory() as folder:
        make = onnxruntime_outputs if arguments.peer == "onnxruntime" else openvino_outputs
        run = make(arguments, pathlib.Path(folder))
        outputs = [run(inputs[begin:begin + arguments.batch]) for begin in range(0, len(inputs), arguments.batch)]
    numpy.save(arguments.output, numpy.concatenate(outputs))


if __name__ == "__main__":
    main()
