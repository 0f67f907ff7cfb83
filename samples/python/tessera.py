"""Python bindings for Tessera, by ctypes alone. Kernels of a C++ library run in place on tensors of NumPy, PyTorch or
CuPy, which are shared through DLPack; Model, Session and Tokenizer generate text. include/tessera/tessera_c.h documents each call, docs/contracts.md the
synchronization.

libtessera_c.so is loaded from the path in TESSERA_C, if that is set. Otherwise an installed tessera.py loads the
library of its own installation, and any other tessera.py leaves the search to the dynamic loader."""

import ctypes
import operator
import os
import re
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint64, c_void_p

def _open_library():
    installed = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../libtessera_c.so")
    found = os.path.normpath(installed) if os.path.exists(installed) else "libtessera_c.so"
    try:
        return ctypes.CDLL(os.environ.get("TESSERA_C") or found)
    except OSError as error:
        raise ImportError(f"{error}; set TESSERA_C to the path of libtessera_c.so") from None


_lib = _open_library()


class Error(Exception):
    """An error of the library, with the text of tessera_last_error()."""


def _check(status, function, _):
    if status != 0:
        raise Error(_lib.tessera_last_error().decode())


_lib.tessera_last_error.restype = c_char_p
_lib.tessera_version.restype = c_char_p


class _List(ctypes.Structure):
    _fields_ = [("tensors", POINTER(c_void_p)), ("count", c_size_t)]


class _Value(ctypes.Union):
    _fields_ = [("tensor", c_void_p), ("integer", c_int64), ("number", c_uint64), ("real", c_double), ("list", _List)]


class _Argument(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("value", _Value)]


class _Sampling(ctypes.Structure):
    _fields_ = [("temperature", c_float), ("top_k", c_int32), ("top_p", c_float), ("min_p", c_float),
                ("repetition_penalty", c_float), ("seed", c_uint64)]


_TENSOR, _INTEGER, _UNSIGNED, _REAL, _LIST = range(5)  # values of _Argument.kind


def _fits_i64(number):
    return -(1 << 63) <= number < 1 << 63


for _name, *_types in [
    ("device_open", c_char_p, POINTER(c_void_p)),
    ("device_name", c_void_p, POINTER(c_char_p)),
    ("device_dlpack", c_void_p, POINTER(c_int32), POINTER(c_int32)),
    ("device_synchronize", c_void_p),
    ("stream_of", c_void_p, POINTER(c_void_p)),
    ("stream_new", c_void_p, POINTER(c_void_p)),
    ("stream_from", c_void_p, c_void_p, POINTER(c_void_p)),
    ("stream_native", c_void_p, POINTER(c_void_p)),
    ("stream_synchronize", c_void_p),
    ("stream_wait", c_void_p, c_void_p),
    ("event_record", c_void_p, POINTER(c_void_p)),
    ("event_synchronize", c_void_p),
    ("event_milliseconds", c_void_p, c_void_p, POINTER(c_double)),
    ("tensor_new", c_void_p, c_char_p, c_int32, POINTER(c_int64), POINTER(c_void_p)),
    ("tensor_from_dlpack", c_void_p, c_void_p, POINTER(c_void_p)),
    ("tensor_to_dlpack", c_void_p, POINTER(c_void_p)),
    ("tensor_text", c_void_p, POINTER(c_char_p)),
    ("tensor_copy", c_void_p, c_void_p),
    ("library_open", c_char_p, POINTER(c_void_p)),
    ("library_count", c_void_p, POINTER(c_size_t)),
    ("library_name", c_void_p, c_size_t, POINTER(c_char_p)),
    ("kernel_get", c_void_p, c_char_p, POINTER(c_void_p)),
    ("kernel_text", c_void_p, POINTER(c_char_p)),
    ("launch", c_void_p, c_void_p, POINTER(_Argument), c_size_t),
]:
    _function = getattr(_lib, "tessera_" + _name)
    _function.argtypes, _function.errcheck = _types, _check
_MODELS = [
    ("tokenizer_open", c_char_p, POINTER(c_void_p)),
    ("tokenizer_encode", c_void_p, c_char_p, c_size_t, POINTER(c_int32), c_size_t, POINTER(c_size_t)),
    ("tokenizer_decode", c_void_p, POINTER(c_int32), c_size_t, POINTER(c_char), c_size_t, POINTER(c_size_t)),
    ("tokenizer_bytes", c_void_p, c_int32, POINTER(c_char), c_size_t, POINTER(c_size_t)),
    ("model_end_tokens", c_void_p, POINTER(c_int32), c_size_t, POINTER(c_size_t)),
    ("model_open", c_void_p, c_char_p, c_char_p, c_int32, POINTER(c_void_p)),
    ("model_extents", c_void_p, POINTER(c_int32), POINTER(c_int32)),
    ("session_new", c_void_p, c_int32, c_int32, POINTER(c_void_p)),
    ("session_append", c_void_p, POINTER(c_int32), POINTER(c_size_t)),
    ("session_sample", c_void_p, POINTER(_Sampling), POINTER(c_int64), POINTER(c_int32)),
    ("session_logits", c_void_p, POINTER(c_float)),
    ("session_length", c_void_p, c_int32, POINTER(c_int32)),
    ("session_truncate", c_void_p, c_int32, c_int32),
    ("session_copy", c_void_p, c_int32, c_void_p, c_int32),
]
_has_models = hasattr(_lib, "tessera_model_open")  # of a library built with nlohmann-json
if _has_models:
    for _name, *_types in _MODELS:
        _function = getattr(_lib, "tessera_" + _name)
        _function.argtypes, _function.errcheck = _types, _check
    _lib.tessera_sampling_greedy.restype = _Sampling
for _name in ["device", "stream", "event", "tensor", "library", "kernel", "dlpack"] + _has_models * [
        "tokenizer", "model", "session"]:
    _function = getattr(_lib, f"tessera_{_name}_free")
    _function.argtypes, _function.restype = [c_void_p], None


def _made(function, *arguments, kind=c_void_p):
    """Calls a function that returns its result through its last parameter, and returns that result."""
    result = kind()
    function(*arguments, byref(result))
    return result.value


class _Handle:
    """Owns a handle of the library."""

    def __init__(self, handle, free):
        self._as_parameter_, self._free = handle, free

    def __del__(self):
        if free := getattr(self, "_free", None):  # absent if the constructor failed
            free(self._as_parameter_)


class Device(_Handle):
    """A device: "auto", "cpu", "cuda" or "cuda:1"."""

    def __init__(self, text="auto"):
        super().__init__(_made(_lib.tessera_device_open, text.encode()), _lib.tessera_device_free)
        self.name = _made(_lib.tessera_device_name, self, kind=c_char_p).decode()
        kind, number = c_int32(), c_int32()
        _lib.tessera_device_dlpack(self, byref(kind), byref(number))
        self.dlpack = kind.value, number.value

    def stream(self):
        return Stream(self, _made(_lib.tessera_stream_of, self))

    def new_stream(self):
        return Stream(self, _made(_lib.tessera_stream_new, self))

    def stream_from(self, cuda_stream):
        """Wraps a CUDA stream, such as torch.cuda.current_stream().cuda_stream, which must outlive the result."""
        return Stream(self, _made(_lib.tessera_stream_from, self, cuda_stream))

    def synchronize(self):
        _lib.tessera_device_synchronize(self)

    def tensor(self, type, extents):
        """Allocates a tensor with undefined contents: device.tensor("f32", [2, 3])."""
        extents = [operator.index(extent) for extent in extents]
        if not all(map(_fits_i64, extents)):  # ctypes would reduce them modulo 2^64
            raise OverflowError(f"extents {extents} do not all fit in 64 bits")
        extents = (c_int64 * len(extents))(*extents)
        return Tensor(self, _made(_lib.tessera_tensor_new, self, type.encode(), len(extents), extents))


class Stream(_Handle):
    def __init__(self, device, handle):
        super().__init__(handle, _lib.tessera_stream_free)
        self.device = device

    def native(self):
        """The stream's CUstream as an integer; None on the CPU."""
        return _made(_lib.tessera_stream_native, self)

    def synchronize(self):
        _lib.tessera_stream_synchronize(self)

    def record(self):
        return Event(_made(_lib.tessera_event_record, self), _lib.tessera_event_free)

    def wait(self, event):
        _lib.tessera_stream_wait(self, event)


class Event(_Handle):
    def synchronize(self):
        _lib.tessera_event_synchronize(self)

    def milliseconds_since(self, earlier):
        return _made(_lib.tessera_event_milliseconds, earlier, self, kind=c_double)


# A capsule holds a DLManagedTensor. It is named "dltensor" until a consumer takes the tensor and renames the capsule. A
# capsule stores only the pointer to its name, so these bytes must stay alive.
_FREE, _TAKEN = b"dltensor", b"used_dltensor"
_python = ctypes.pythonapi
_python.PyCapsule_New.restype, _python.PyCapsule_New.argtypes = ctypes.py_object, [c_void_p, c_char_p, c_void_p]
_python.PyCapsule_GetPointer.restype, _python.PyCapsule_GetPointer.argtypes = c_void_p, [c_void_p, c_char_p]
_python.PyCapsule_SetName.argtypes = [c_void_p, c_char_p]


# Frees the tensor of a capsule that no consumer took. It is a C function because it may run while a Python exception is
# set: that of a consumer that rejected the tensor.
_DROP = ctypes.cast(_lib.tessera_dlpack_capsule_free, c_void_p)


class Tensor(_Handle):
    """A tensor shared through DLPack: Tensor.of(array), numpy.from_dlpack(tensor), torch.from_dlpack(tensor)."""

    def __init__(self, device, handle):
        super().__init__(handle, _lib.tessera_tensor_free)
        self.device, self.stream = device, device.stream()  # the stream of the latest launch that used the tensor

    @staticmethod
    def of(array, stream):
        """A tensor over the array's own memory. Later work on `stream` runs after the work of the array's stream."""
        device = stream.device
        if device.dlpack[0] == 1:
            capsule = array.__dlpack__()
        else:
            capsule = array.__dlpack__(stream=stream.native())  # the producer makes this stream wait for its own
        managed = _python.PyCapsule_GetPointer(id(capsule), _FREE)
        tensor = Tensor(device, _made(_lib.tessera_tensor_from_dlpack, managed, device))
        _python.PyCapsule_SetName(id(capsule), _TAKEN)  # after a failure the capsule still owns the tensor
        tensor.stream = stream
        return tensor

    def __dlpack_device__(self):
        return self.device.dlpack

    def __dlpack__(self, *, stream=None, **_):
        """Exports the tensor. The consumer's stream (None: CUDA's legacy default stream; -1: none) waits for the latest
        launch."""
        if self.device.dlpack[0] != 1 and stream != -1:
            self.device.stream_from(stream).wait(self.stream.record())
        managed = _made(_lib.tessera_tensor_to_dlpack, self)
        return _python.PyCapsule_New(managed, _FREE, _DROP)

    def copy_from(self, other):
        _lib.tessera_tensor_copy(self, other)

    def __repr__(self):
        return f"tessera.Tensor({_made(_lib.tessera_tensor_text, self, kind=c_char_p).decode()}, {self.device.name})"


class Library(_Handle):
    """A shared library that exports kernels: library["scaled"](stream, x, y, 2.0)."""

    def __init__(self, path):
        super().__init__(_made(_lib.tessera_library_open, os.fspath(path).encode()), _lib.tessera_library_free)
        count = _made(_lib.tessera_library_count, self, kind=c_size_t)
        self.names = sorted(_made(_lib.tessera_library_name, self, i, kind=c_char_p).decode() for i in range(count))

    def __getitem__(self, name):
        return Kernel(_made(_lib.tessera_kernel_get, self, name.encode()), _lib.tessera_kernel_free)


class Kernel(_Handle):
    def __call__(self, stream, *values):
        """Launches the kernel on `stream`. Arguments are tensors, arrays that have __dlpack__, lists of these, None for
        an Optional one, and numbers: Python's, NumPy's, or anything that has __index__ or __float__."""
        arguments, tensors = (_Argument * len(values))(), []

        def handle_of(value):
            tensors.append(value if isinstance(value, Tensor) else Tensor.of(value, stream))
            return tensors[-1]._as_parameter_

        for position, (argument, value) in enumerate(zip(arguments, values)):
            if value is None:
                argument.kind = _TENSOR
            elif hasattr(value, "__dlpack__"):
                argument.kind, argument.value.tensor = _TENSOR, handle_of(value)
            elif isinstance(value, (list, tuple)):
                for one in value:
                    if not hasattr(one, "__dlpack__"):
                        what = type(one).__name__
                        raise TypeError(f"argument {position + 1} has a {what} in its list, not a DLPack array")
                handles = (c_void_p * len(value))(*map(handle_of, value))
                argument.kind, argument.value.list = _LIST, _List(handles, len(value))
            else:
                self._set_number(argument, position, value)
        _lib.tessera_launch(stream, self, arguments, len(values))
        for tensor in tensors:
            tensor.stream = stream

    def _set_number(self, argument, position, value):
        try:
            integer = operator.index(value)
        except TypeError:
            if not hasattr(value, "__float__"):
                what = type(value).__name__
                raise TypeError(f"argument {position + 1} is a {what}, neither a number nor a DLPack array") from None
            argument.kind, argument.value.real = _REAL, float(value)
            return
        if _fits_i64(integer):
            argument.kind, argument.value.integer = _INTEGER, integer
        elif 0 <= integer < 1 << 64:
            argument.kind, argument.value.number = _UNSIGNED, integer
        else:
            parameters = re.findall(r"\w+<[^>]*>", repr(self))
            if position < len(parameters) and parameters[position] not in ("Scalar<f32>", "Scalar<f64>"):
                raise OverflowError(f"argument {position + 1} is {integer}, which does not fit in 64 bits; "
                                    f"parameter {position + 1} is {parameters[position]}")
            argument.kind, argument.value.real = _REAL, float(integer)

    def __repr__(self):
        return _made(_lib.tessera_kernel_text, self, kind=c_char_p).decode()


def _require_models():
    if not _has_models:
        raise Error("this libtessera_c has no models, since it was built without nlohmann-json")


def _integers(kind, numbers):
    """An array of integers, which ctypes would otherwise reduce to their lowest bits."""
    numbers = [operator.index(number) for number in numbers]
    array = (kind * len(numbers))(*numbers)
    if array[:] != numbers:
        raise OverflowError(f"{numbers} do not all fit in {8 * ctypes.sizeof(kind)} bits")
    return array


def _int32s(numbers):
    return _integers(c_int32, numbers)


def _sequence(session, sequence):
    number = operator.index(sequence)
    if not 0 <= number < session.sequences:
        raise IndexError(f"there is no sequence {number} in a session of {session.sequences}")
    return number


class Tokenizer(_Handle):
    """The tokenizer of a model: of a folder in the Hugging Face layout, or of a name in the hub's cache."""

    def __init__(self, path):
        _require_models()
        super().__init__(_made(_lib.tessera_tokenizer_open, os.fsencode(path)), _lib.tessera_tokenizer_free)

    def encode(self, text):
        """The token ids of a text."""
        text = text.encode()
        ids, count = (c_int32 * (len(text) + 8))(), c_size_t()  # enough, unless tokens stand for parts of characters
        _lib.tessera_tokenizer_encode(self, text, len(text), ids, len(ids), byref(count))
        if count.value > len(ids):
            ids = (c_int32 * count.value)()
            _lib.tessera_tokenizer_encode(self, text, len(text), ids, len(ids), byref(count))
        return ids[:count.value]

    def decode(self, ids):
        """The text of token ids."""
        ids, count = _int32s(ids), c_size_t()
        _lib.tessera_tokenizer_decode(self, ids, len(ids), None, 0, byref(count))
        text = (c_char * count.value)()
        _lib.tessera_tokenizer_decode(self, ids, len(ids), text, len(text), byref(count))
        return text.raw.decode()

    def bytes_of(self, id):
        """The bytes of one token, often only a part of a character: for a text that is printed token by token."""
        (id,), count = _int32s([id]), c_size_t()
        _lib.tessera_tokenizer_bytes(self, id, None, 0, byref(count))
        text = (c_char * count.value)()
        _lib.tessera_tokenizer_bytes(self, id, text, len(text), byref(count))
        return text.raw


class Model(_Handle):
    """A GPT-2 or Llama on a device: Model("gpt2", Device("cuda"), "bf16"). The path is that of a Tokenizer; the type of the
    matmul operands "f32", "tf32" or "bf16". The logits of a text have the same bits in any batch of a batch-invariant model, and however
    its tokens were appended; steps take longer."""

    def __init__(self, path, device=None, type="f32", batch_invariant=False):
        _require_models()
        self.device = device or Device()
        handle = _made(_lib.tessera_model_open, self.device, os.fsencode(path), type.encode(), bool(batch_invariant))
        super().__init__(handle, _lib.tessera_model_free)
        vocabulary, positions = c_int32(), c_int32()
        _lib.tessera_model_extents(self, byref(vocabulary), byref(positions))
        self.vocabulary, self.positions = vocabulary.value, positions.value
        count = c_size_t()
        _lib.tessera_model_end_tokens(self, None, 0, byref(count))
        ends = (c_int32 * count.value)()
        _lib.tessera_model_end_tokens(self, ends, len(ends), byref(count))
        self.end_tokens = ends[:]  # those that end a text

    def session(self, sequences=1, capacity=None):
        """Texts of up to `capacity` tokens each; None: as many as the model has positions."""
        return Session(self, sequences, self.positions if capacity is None else capacity)


class Session(_Handle):
    """Texts of a model that grow side by side, with their keys and values."""

    def __init__(self, model, sequences, capacity):
        sequences, capacity = _int32s([sequences, capacity])
        super().__init__(_made(_lib.tessera_session_new, model, sequences, capacity), _lib.tessera_session_free)
        self.model, self.sequences = model, sequences

    def append(self, *tokens):
        """Appends tokens to each sequence: session.append([1, 2, 3], []) to the first of two."""
        if len(tokens) != self.sequences:
            raise ValueError(f"tokens for {len(tokens)} sequences are given to a session of {self.sequences}")
        parts = [_int32s(part) for part in tokens]
        _lib.tessera_session_append(self, _int32s(token for part in parts for token in part),
                                    (c_size_t * len(parts))(*map(len, parts)))

    def sample(self, streams=None, **sampling):
        """Chooses the next token of each sequence, and does not append it: session.sample(temperature=0.8, top_k=40,
        seed=1). `sampling` may also have top_p, min_p and repetition_penalty; without any, the most probable token."""
        how, tokens = _lib.tessera_sampling_greedy(), (c_int32 * self.sequences)()
        for name, value in sampling.items():
            if name not in dict(how._fields_):
                raise TypeError(f"sampling has no {name}; it has {', '.join(dict(how._fields_))}")
            kind = dict(how._fields_)[name]
            setattr(how, name, float(value) if kind is c_float else _integers(kind, [value])[0])
        if streams is not None and len(streams) != self.sequences:
            raise ValueError(f"{len(streams)} streams are given to a session of {self.sequences}")
        given = None if streams is None else _integers(c_int64, streams)
        _lib.tessera_session_sample(self, byref(how), given, tokens)
        return list(tokens)

    def logits(self):
        """The logits of each sequence's last token: a memoryview [sequences, vocabulary] of floats, as numpy.asarray
        takes it; meaningless for sequences that got no token by the last append."""
        values = (c_float * self.model.vocabulary * self.sequences)()
        _lib.tessera_session_logits(self, ctypes.cast(values, POINTER(c_float)))
        return memoryview(values).cast("B").cast("f", [self.sequences, self.model.vocabulary])

    def length(self, sequence=0):
        return _made(_lib.tessera_session_length, self, _sequence(self, sequence), kind=c_int32)

    def truncate(self, sequence, length):
        """Shortens a sequence to its first `length` tokens."""
        _lib.tessera_session_truncate(self, _sequence(self, sequence), *_int32s([length]))

    def copy(self, sequence, other, of=0):
        """Makes a sequence a copy of sequence `of` of a session of the same model, without computing it again."""
        _lib.tessera_session_copy(self, _sequence(self, sequence), other, _sequence(other, of))
