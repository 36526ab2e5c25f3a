# SPDX-License-Identifier: Apache-2.0
"""Tensors: memory of a device, and copies between it and arrays of the host."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from pypto.checked import host_dtype, instance, shown, text, whole
from pypto.device import Device, current_device
from pypto.errors import AllocationError, CopySizeError, DeviceError
from pypto.place import caller
from pypto.types import DType, f32, from_numpy_dtype, stores_as

Array = Any
"""numpy arrays, anything with the buffer protocol (bytes, array.array, memoryview) or DLPack."""


class Tensor:
    """Memory of a device, zeroed; as an argument of a kernel a pointer to its first element.

    nbytes: its size. dtype: type of its elements (`pypto.f32`, a numpy dtype); an untyped tensor is
    f32 for kernels, and takes the type of the first array that is copied into the whole of it.
    shape: of `numpy()`; one dimension if left out. name: what messages call it.

    It is freed by `free()`, at the end of a `with` (which first waits for the kernels that use it) or
    with its last reference. A kernel that still uses it keeps the memory until it is done.
    `copy.copy` gives a tensor of its own with the same contents, `np.asarray` what `numpy()` gives.

    Raises AllocationError where there is not so much memory; TypeError, and ValueError where size, type
    and shape do not go together.
    """

    _pto_is_tensor_ = True

    def __init__(
        self,
        nbytes: int,
        dtype: Any = None,
        *,
        shape: tuple[int, ...] | None = None,
        name: str = "",
        device: Device | None = None,
    ) -> None:
        nbytes = _as_size(nbytes)
        text("name", name)
        if device is not None:
            instance("device", device, Device, "what pypto.device(name) returns")
        self._dtype = None if dtype is None else from_numpy_dtype(dtype)
        self._shape = None if shape is None else _as_shape(shape)
        item = (self._dtype or f32).size
        if self._dtype is not None and nbytes % item != 0:
            raise ValueError(f"{nbytes} bytes are no whole number of {self._dtype.name} ({item} bytes each)")
        if self._shape is not None and math.prod(self._shape) * item != nbytes:
            raise ValueError(
                f"shape {self._shape} of {(self._dtype or f32).name} takes {math.prod(self._shape) * item} "
                f"bytes; the tensor has {nbytes}"
            )
        self.device = device if device is not None else current_device()
        self._buffer = self.device._impl.alloc(nbytes, name, caller())

    @classmethod
    def from_numpy(cls, array: Array, *, name: str = "", device: Device | None = None) -> "Tensor":
        """A tensor with the array's bytes, type and shape.

        Raises TypeError for types that PTO lacks (float64: use `array.astype(np.float32)`).
        """
        source, dtype = _typed_array(array)
        tensor = cls(source.nbytes, dtype, shape=source.shape, name=name, device=device)
        tensor._write(np.ascontiguousarray(source))
        return tensor

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._buffer.nbytes

    @property
    def dtype(self) -> DType | None:
        """Type of the elements; None while untyped (kernels take that as f32)."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """In elements."""
        return self._shape if self._shape is not None else (self.size,)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.nbytes // (self._dtype or f32).size

    @property
    def address(self) -> int:
        """Device address of its first byte."""
        return self._buffer.address

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._buffer.name

    @property
    def is_freed(self) -> bool:
        """True after `free()` or the end of its `with`."""
        return self._buffer.is_freed

    def numpy(self, dtype: Any = None, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """A new array with its contents; waits for kernels that use it.

        dtype: how to read the bytes (numpy dtype or PTO type); default its own, f32 if untyped. bf16
        comes as uint16, the bits. shape: default its own where the type is, else one dimension.
        Raises ValueError if the bytes do not make whole elements or not that shape, KernelError if a kernel
        that used it failed, AllocationError if the host has not so much memory.
        """
        host = as_host_dtype(dtype if dtype is not None else self._dtype or f32)
        if self.nbytes % host.itemsize != 0:
            raise ValueError(f"{self.nbytes} bytes are no whole number of {host} ({host.itemsize} bytes each)")
        count = self.nbytes // host.itemsize
        if shape is None:
            shape = self.shape if math.prod(self.shape) == count else (count,)
        elif not isinstance(shape, (int, tuple, list)):
            raise TypeError(f"shape is {shown(shape)}; expected a tuple of whole numbers")
        array = empty_array(count, host)
        self._read(array)
        try:
            return array.reshape(shape)
        except (ValueError, OverflowError):
            raise ValueError(f"tensor of {count} elements of {host} has no shape {shown(shape)}") from None
        except TypeError:
            raise TypeError(f"shape is {shown(shape)}; expected a tuple of whole numbers") from None

    def wait(self) -> None:
        """Until no launch made so far uses it. Raises KernelError if one of those failed."""
        try:
            self._buffer.wait()
        finally:
            self.device._show_prints()

    def free(self) -> None:
        """Gives the memory up. Raises FreedTensorError the second time."""
        self._buffer.free(caller())

    def _read(self, array: np.ndarray, offset: int = 0) -> None:
        try:
            self._buffer.read(_bytes_of(array), offset)
        finally:
            self.device._show_prints()

    def _write(self, array: np.ndarray, offset: int = 0) -> None:
        try:
            self._buffer.write(_bytes_of(array), offset)
        finally:
            self.device._show_prints()

    def __enter__(self) -> "Tensor":
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_freed:
            return
        try:
            self.wait()
        finally:
            if not self.is_freed:
                self.free()

    def __del__(self) -> None:
        buffer = getattr(self, "_buffer", None)  # None: __init__ has raised
        try:
            if buffer is not None and not buffer.is_freed:
                buffer.free(caller())
        except DeviceError:
            pass  # in a child that fork() made: the memory is the parent's

    def __copy__(self) -> "Tensor":
        made = Tensor(self.nbytes, self._dtype, shape=self._shape, device=self.device)
        made._write(self.numpy(np.uint8))
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tensor":
        return self.__copy__()

    def __reduce__(self) -> Any:
        raise TypeError("a tensor is memory of this process and cannot be pickled: send tensor.numpy()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a tensor is memory of a device: an array of it is always a copy")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 0

    def __repr__(self) -> str:
        kind = self._dtype.name if self._dtype else "untyped"
        state = ", freed" if self.is_freed else ""
        return f"<pypto.Tensor {self.name}: {kind}{list(self.shape)}, {self.nbytes} bytes{state}>"


def alloc_tensor(
    nbytes: int,
    dtype: Any = None,
    *,
    shape: tuple[int, ...] | None = None,
    name: str = "",
    device: Device | None = None,
) -> Tensor:
    """A zeroed tensor of `nbytes` bytes on the current device; arguments as of `Tensor`."""
    return Tensor(nbytes, dtype, shape=shape, name=name, device=device)


def memcpy_h2d(dst: Tensor, array: Array, *, offset: int = 0, nbytes: int | None = None) -> None:
    """Copies an array into a tensor, complete on return; waits for kernels that use the tensor.

    Sizes must be equal; `offset` and `nbytes` (of the tensor, in bytes) say otherwise. Types must be
    equal too, where both are known; bytes (uint8) go anywhere. An untyped tensor takes the type of an
    array that fills it (bytes leave it untyped).
    Raises CopySizeError, TypeError for types that PTO lacks or that differ, FreedTensorError.
    """
    _need_tensor("memcpy_h2d", "dst", dst)
    source, dtype = _typed_array(array)
    _check_types("memcpy_h2d", dst, source)
    offset, nbytes = _check_size("memcpy_h2d", dst, source, offset, nbytes)
    data = np.ascontiguousarray(source)
    if nbytes is not None:
        data = _bytes_of(data)[:nbytes]
    dst._write(data, offset)
    if dst._dtype is None and data.nbytes == dst.nbytes and dtype.bits > 8:
        dst._dtype = dtype


def memcpy_d2h(array: Array, src: Tensor, *, offset: int = 0, nbytes: int | None = None) -> None:
    """Copies a tensor into an array, complete on return; waits for kernels that use the tensor.

    The array must be writable; sizes must be equal, `offset` and `nbytes` (of the tensor, in bytes) say
    otherwise. Types must be equal too: a typed tensor goes into an array of its type or of bytes (uint8),
    an untyped one into any that PTO has. Raises CopySizeError, TypeError for types that PTO lacks or that
    differ, FreedTensorError, KernelError if a kernel that used it failed.
    """
    _need_tensor("memcpy_d2h", "src", src)
    target = as_array(array)
    if not target.flags.writeable:
        raise TypeError(f"memcpy_d2h(): the array ({_described(array)}) is read-only")
    _check_types("memcpy_d2h", src, target)
    offset, nbytes = _check_size("memcpy_d2h", src, target, offset, nbytes)
    wanted = target.nbytes if nbytes is None else nbytes
    if target.flags.c_contiguous:
        src._read(_bytes_of(target)[:wanted], offset)
        return
    # Strided: the bytes go through a packed array.
    packed = np.ascontiguousarray(target)
    src._read(_bytes_of(packed)[:wanted], offset)
    target[...] = packed


def as_array(array: Array) -> np.ndarray:
    """The array as numpy sees it, without a copy. TypeError for what is none."""
    if isinstance(array, np.ndarray):
        return array
    if getattr(array, "_pto_is_tensor_", False):
        raise TypeError("expected an array of the host, not a Tensor; Tensor.numpy() makes one")
    if hasattr(array, "__array_interface__") or isinstance(array, np.generic):
        return np.asarray(array)
    try:
        return np.asarray(memoryview(array))
    except TypeError:
        pass
    if hasattr(array, "__dlpack__"):
        return np.from_dlpack(array)
    raise TypeError(
        f"expected a numpy array, an object with the buffer protocol or DLPack, not {_described(array)}"
    )


def _typed_array(array: Array) -> tuple[np.ndarray, DType]:
    """An array to copy from, and its type; truth values as u8. TypeError for types that PTO lacks."""
    source = as_array(array)
    if source.dtype == np.bool_:
        source = source.view(np.uint8)
    return source, from_numpy_dtype(source.dtype)


def _bytes_of(array: np.ndarray) -> np.ndarray:
    """A C-contiguous array's bytes, without a copy."""
    return array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)


def _check_types(action: str, tensor: Tensor, array: np.ndarray) -> None:
    """TypeError where a copy would read the bits of one type as another's."""
    host = array.dtype
    if host == np.uint8 or (host == np.bool_ and tensor.dtype is None):
        return
    dtype = from_numpy_dtype(np.uint8 if host == np.bool_ else host)
    if tensor.dtype is None or stores_as(tensor.dtype, dtype):
        return
    wanted = tensor.dtype.numpy()
    raise TypeError(
        f"{action}(): the array is {_described(array)} and tensor {tensor.name} holds {tensor.dtype.name}; a copy "
        f"converts nothing: use an array of {wanted}, or .view(np.uint8) for the bytes"
    )


def _check_size(
    action: str, tensor: Tensor, array: np.ndarray, offset: int, nbytes: int | None
) -> tuple[int, int | None]:
    """Offset and size as numbers; CopySizeError where they do not fit."""
    for name, value in (("offset", offset), ("nbytes", nbytes)):
        if hasattr(value, "__index__") and value.__index__() < 0:
            raise ValueError(f"{action}(): {name} is {value}; it must not be negative")
    offset = whole(f"{action}(): offset", offset, high=2**63)
    nbytes = None if nbytes is None else whole(f"{action}(): nbytes", nbytes, high=2**63)
    wanted = tensor.nbytes - offset if nbytes is None else nbytes
    if nbytes is None and offset:
        wanted = array.nbytes  # the runtime checks that it fits
    short = array.nbytes < wanted if nbytes is not None else array.nbytes != wanted
    if short:
        hint = ""
        if array.nbytes == 2 * wanted and array.dtype == np.float64:
            hint = "; its type is float64, PTO's floats have 32 bits: use .astype(np.float32)"
        error = CopySizeError(
            f"{action}(): the array has {array.nbytes} bytes ({_described(array)}), tensor {tensor.name} "
            f"{wanted}: sizes must be equal, or give offset= and nbytes={hint}"
        )
        error.tensor_nbytes, error.offset, error.copy_nbytes = tensor.nbytes, offset, array.nbytes
        raise error
    return offset, nbytes


def _described(array: Any) -> str:
    if isinstance(array, np.ndarray):
        return f"{array.dtype}{list(array.shape)}"
    return f"a {type(array).__name__}"


def _need_tensor(action: str, name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{action}(): {name} is {_described(value)}; expected a Tensor")


def _as_size(nbytes: Any) -> int:
    if isinstance(nbytes, bool) or not hasattr(nbytes, "__index__"):
        raise TypeError(f"the size of a tensor is {shown(nbytes)}; expected a number of bytes")
    size = nbytes.__index__()
    if size < 0:
        raise ValueError(f"the size of a tensor is {size} bytes; it must not be negative")
    if size >= 2**63:
        raise AllocationError(f"cannot allocate {shown(size)} bytes: that is more than an address can count")
    return size


def _as_shape(shape: Any) -> tuple[int, ...]:
    try:
        return tuple(whole("an extent of the shape", n) for n in shape)
    except TypeError:
        raise TypeError(f"shape is {shown(shape)}; expected a tuple of whole numbers") from None


def as_host_dtype(dtype: Any) -> np.dtype:
    """The numpy type that reads the bits of a DType; numpy's own as they are. TypeError for what is none."""
    return dtype.numpy() if isinstance(dtype, DType) else host_dtype("dtype", dtype)


def empty_array(count: int, dtype: np.dtype) -> np.ndarray:
    """An array of the host. AllocationError where it has not so much memory."""
    try:
        return np.empty(count, dtype)
    except (MemoryError, ValueError):
        raise AllocationError(f"the host has no memory for {count} elements of {dtype}") from None
