//! Other libraries' memory, read and written in place: NumPy arrays, and through DLPack whatever else lies in
//! this machine's memory (torch, jax). It refuses to copy, to convert, and to know what the numbers mean.
#![allow(unsafe_code)] // raw array memory; every view is checked for type, layout, alignment and writability first

use crate::errors::to_py;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use logitree::sampling::Floats;
use logitree::{Error, ErrorKind};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use std::borrow::Cow;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, Ordering};

/// The number types that are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    F32,
    F16,
    Bf16,
    I32,
    U32,
    U16,
}

/// A Rust type that stands for some of [`Number`] bit for bit.
///
/// # Safety
/// Every bit pattern is a value, and size and alignment are those of each number in `NUMBERS`.
pub unsafe trait Element: Copy {
    /// The numbers whose memory may be looked at as this type.
    const NUMBERS: &'static [Number];
}

// SAFETY: an f32 is any 32 bits.
unsafe impl Element for f32 {
    const NUMBERS: &'static [Number] = &[Number::F32];
}
// SAFETY: an f16 is any 16 bits.
unsafe impl Element for half::f16 {
    const NUMBERS: &'static [Number] = &[Number::F16];
}
// SAFETY: a bf16 is any 16 bits; U16 is how NumPy alone holds one.
unsafe impl Element for half::bf16 {
    const NUMBERS: &'static [Number] = &[Number::Bf16, Number::U16];
}
// SAFETY: a u32 is any 32 bits, and so is an i32.
unsafe impl Element for u32 {
    const NUMBERS: &'static [Number] = &[Number::I32, Number::U32];
}
// SAFETY: a u16 is any 16 bits.
unsafe impl Element for u16 {
    const NUMBERS: &'static [Number] = &[Number::U16];
}

/// One or several rows of numbers in another library's memory, each row without gaps.
pub struct Rows<'py> {
    /// What the caller calls it ("mask", "logits"), and the kind of its errors.
    what: &'static str,
    kind: ErrorKind,
    data: NonNull<u8>,
    rows: usize,
    columns: usize,
    /// Elements from one row's start to the next's.
    stride: usize,
    number: Number,
    writeable: bool,
    flat: bool,
    /// Keeps the memory alive.
    _owner: Bound<'py, PyAny>,
}

/// Layout as it is found, before it is judged.
struct Found<'a, 'py> {
    data: *mut u8,
    shape: Cow<'a, [usize]>,
    /// In bytes.
    strides: Cow<'a, [isize]>,
    size: usize,
    number: Number,
    writeable: bool,
    owner: Bound<'py, PyAny>,
}

impl<'py> Rows<'py> {
    /// The memory of `object`: one- or two-dimensional, rows without gaps.
    pub fn of(object: &Bound<'py, PyAny>, what: &'static str, kind: ErrorKind) -> PyResult<Self> {
        let fail = |message: String, help: &str| to_py(Error::new(kind, message).help(help));
        let found = match object.cast::<PyUntypedArray>() {
            Ok(array) => {
                from_numpy(array).map_err(|dtype| fail(format!("{what} of dtype {dtype}"), accepted(kind)))?
            }
            Err(_) => from_dlpack(object, what, kind)?,
        };
        let (rows, columns, stride) = match (&found.shape[..], &found.strides[..]) {
            (&[0], _) => (1, 0, 0),
            (&[rows, n], _) if rows == 0 || n == 0 => (rows, n, n),
            (&[n], &[step]) if step == found.size as isize || n <= 1 => (1, n, n),
            (&[rows, n], &[_, step]) if rows <= 1 && (step == found.size as isize || n <= 1) => (rows, n, n),
            (&[rows, n], &[row, step])
                if (step == found.size as isize || n <= 1)
                    && row >= (n * found.size) as isize
                    && row % found.size as isize == 0 =>
            {
                (rows, n, row as usize / found.size)
            }
            (&[_] | &[_, _], strides) => {
                let message = format!("{what} with strides {strides:?} bytes for shape {:?}", found.shape);
                return Err(fail(
                    message,
                    "rows must lie without gaps: numpy.ascontiguousarray makes a copy",
                ));
            }
            _ => {
                let message = format!("{what} of shape {:?}", found.shape);
                return Err(fail(message, "give one dimension, or two: rows"));
            }
        };
        if found.data.is_null() && rows * columns > 0 {
            return Err(fail(format!("{what} without memory"), "the object hands out a null pointer"));
        }
        if !(found.data as usize).is_multiple_of(found.size) {
            return Err(fail(format!("{what} not aligned to {} bytes", found.size), "copy it"));
        }
        Ok(Rows {
            what,
            kind,
            data: NonNull::new(found.data).unwrap_or(NonNull::<u64>::dangling().cast()),
            rows,
            columns,
            stride,
            number: found.number,
            writeable: found.writeable,
            flat: found.shape.len() == 1,
            _owner: found.owner,
        })
    }

    /// What the numbers are.
    pub fn number(&self) -> Number {
        self.number
    }

    /// Number of rows; 1 for one dimension.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Whether there is one dimension only.
    pub fn is_flat(&self) -> bool {
        self.flat
    }

    /// An error about this memory.
    pub fn error(&self, message: impl std::fmt::Display, help: &str) -> PyErr {
        to_py(Error::new(self.kind, format!("{} {message}", self.what)).help(help))
    }

    /// Fails unless the memory holds `T` and may be written.
    pub fn check_write<T: Element>(&self) -> PyResult<()> {
        self.check::<T>()?;
        if self.writeable {
            return Ok(());
        }
        Err(self.error("in read-only memory", "pass a writable copy"))
    }

    /// Fails unless the memory holds `T`.
    pub fn check<T: Element>(&self) -> PyResult<()> {
        if T::NUMBERS.contains(&self.number) {
            return Ok(());
        }
        let names: Vec<_> = T::NUMBERS.iter().map(|n| n.name()).collect();
        Err(self
            .error(format!("of dtype {}", self.number.name()), &format!("expected {}", names.join(" or "))))
    }

    /// Row `i`. Fails where [`Rows::check`] does, or there is no such row.
    pub fn row<T: Element>(&self, i: usize) -> PyResult<&[T]> {
        self.check::<T>()?;
        let at = self.start::<T>(i)?;
        // SAFETY: `of` checked bounds and alignment, `check` the type, `start` the row; `_owner` keeps the memory.
        // Writing the array meanwhile, from another thread or from a chain's own callable, is the caller's race, as it
        // is with every NumPy function.
        Ok(unsafe { std::slice::from_raw_parts(at, self.columns) })
    }

    /// Row `i` as logits. Fails for another dtype, or if there is no such row.
    pub fn floats(&self, i: usize) -> PyResult<Floats<'_>> {
        match self.number {
            Number::F32 => Ok(Floats::F32(self.row(i)?)),
            Number::F16 => Ok(Floats::F16(self.row::<f16>(i)?.reinterpret_cast())),
            Number::Bf16 | Number::U16 => Ok(Floats::Bf16(self.row::<bf16>(i)?.reinterpret_cast())),
            Number::I32 | Number::U32 => Err(self.no_floats()),
        }
    }

    fn no_floats(&self) -> PyErr {
        self.error(format!("of dtype {}", self.number.name()), accepted(self.kind))
    }

    /// All rows as logits. Fails for another dtype, even without rows.
    pub fn all_floats(&self) -> PyResult<Vec<Floats<'_>>> {
        match self.number {
            Number::F32 => self.each(Floats::F32),
            Number::F16 => self.each(|row: &[f16]| Floats::F16(row.reinterpret_cast())),
            Number::Bf16 | Number::U16 => self.each(|row: &[bf16]| Floats::Bf16(row.reinterpret_cast())),
            Number::I32 | Number::U32 => Err(self.no_floats()),
        }
    }

    /// What `of` makes of each row. Fails where [`Rows::check`] does.
    fn each<'s, T: Element + 's, U>(&'s self, of: impl Fn(&'s [T]) -> U) -> PyResult<Vec<U>> {
        self.check::<T>()?;
        let start = self.data.as_ptr().cast::<T>();
        // SAFETY: as in `row`; `of` found so many rows.
        let row = |i| unsafe { std::slice::from_raw_parts(start.add(i * self.stride), self.columns) };
        Ok((0..self.rows).map(|i| of(row(i))).collect())
    }

    /// All rows as one slice. Fails where [`Rows::check`] does, or there are gaps between the rows.
    pub fn whole<T: Element>(&self) -> PyResult<&[T]> {
        self.check::<T>()?;
        if self.rows > 1 && self.stride != self.columns {
            return Err(self.error("with gaps between its rows", "numpy.ascontiguousarray makes a copy"));
        }
        // SAFETY: as in `row`, and the rows lie end to end.
        Ok(unsafe { std::slice::from_raw_parts(self.data.as_ptr().cast(), self.rows * self.columns) })
    }

    /// Row `i`, to be written. Fails where [`Rows::check_write`] does, or there is no such row.
    ///
    /// # Safety
    /// No other slice over memory that overlaps the row may be alive; see [`Rows::overlaps`].
    pub unsafe fn row_mut<T: Element>(&mut self, i: usize) -> PyResult<&mut [T]> {
        self.check_write::<T>()?;
        let at = self.start::<T>(i)?;
        // SAFETY: as in `row`; that nothing else looks at the row is the caller's promise.
        Ok(unsafe { std::slice::from_raw_parts_mut(at, self.columns) })
    }

    /// All rows, to be written. Fails where [`Rows::check_write`] does.
    ///
    /// # Safety
    /// As [`Rows::row_mut`], for every row.
    pub unsafe fn rows_mut<T: Element>(&mut self) -> PyResult<Vec<&mut [T]>> {
        self.check_write::<T>()?;
        let starts = (0..self.rows).map(|i| self.start::<T>(i)).collect::<PyResult<Vec<_>>>()?;
        // SAFETY: as in `row_mut`, and a row starts after the end of the previous one: `of` checked the stride.
        let row = |at| unsafe { std::slice::from_raw_parts_mut(at, self.columns) };
        Ok(starts.into_iter().map(row).collect())
    }

    fn start<T>(&self, i: usize) -> PyResult<*mut T> {
        if i >= self.rows {
            return Err(self.error(format!("of {} rows", self.rows), &format!("row {i} was asked for")));
        }
        // SAFETY: row `i` is one of the rows that `of` found in the array.
        Ok(unsafe { self.data.as_ptr().cast::<T>().add(i * self.stride) })
    }

    /// Whether the two share memory, or may.
    pub fn overlaps(&self, other: &Rows<'_>) -> bool {
        let (a, b) = (self.span(), other.span());
        a.0 < b.1 && b.0 < a.1
    }

    /// First and past-the-last address.
    fn span(&self) -> (usize, usize) {
        let start = self.data.as_ptr() as usize;
        let elements = self.rows.saturating_sub(1) * self.stride + self.columns;
        (start, if self.rows == 0 { start } else { start + elements * self.number.size() })
    }
}

impl Number {
    fn name(self) -> &'static str {
        match self {
            Number::F32 => "float32",
            Number::F16 => "float16",
            Number::Bf16 => "bfloat16",
            Number::I32 => "int32",
            Number::U32 => "uint32",
            Number::U16 => "uint16",
        }
    }

    fn size(self) -> usize {
        match self {
            Number::F32 | Number::I32 | Number::U32 => 4,
            Number::F16 | Number::Bf16 | Number::U16 => 2,
        }
    }
}

/// Which dtypes are read.
pub fn accepted(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Mask => "masks are int32 or uint32",
        ErrorKind::Logits => {
            "logits are float32, float16, bfloat16 or uint16 (the bits of bfloat16): convert once where they are \
             made, logits.astype(numpy.float32)"
        }
        _ => "numbers of 16 or 32 bits are read",
    }
}

/// NumPy's number of the bfloat16 that a library registered: to ask for the name takes microseconds.
static BFLOAT16: AtomicI32 = AtomicI32::new(-1);

/// The array's layout, or its dtype's name where the numbers are none of ours.
fn from_numpy<'a, 'py>(array: &'a Bound<'py, PyUntypedArray>) -> Result<Found<'a, 'py>, String> {
    use numpy::npyffi::{flags, NPY_TYPES};
    let dtype = array.dtype();
    let native = dtype.is_native_byteorder().unwrap_or(true);
    const fn num(kind: NPY_TYPES) -> c_int {
        kind as c_int
    }
    let number = match dtype.num() {
        n if n == num(NPY_TYPES::NPY_FLOAT) => Some(Number::F32),
        n if n == num(NPY_TYPES::NPY_HALF) => Some(Number::F16),
        n if n == num(NPY_TYPES::NPY_USHORT) => Some(Number::U16),
        n if n == num(NPY_TYPES::NPY_INT) || (n == num(NPY_TYPES::NPY_LONG) && dtype.itemsize() == 4) => {
            Some(Number::I32)
        }
        n if n == num(NPY_TYPES::NPY_UINT) || (n == num(NPY_TYPES::NPY_ULONG) && dtype.itemsize() == 4) => {
            Some(Number::U32)
        }
        n if n == BFLOAT16.load(Ordering::Relaxed) => Some(Number::Bf16),
        n if dtype.to_string() == "bfloat16" && dtype.itemsize() == 2 => {
            BFLOAT16.store(n, Ordering::Relaxed);
            Some(Number::Bf16)
        }
        _ => None,
    };
    let Some(number) = number.filter(|_| native) else { return Err(dtype.to_string()) };
    // SAFETY: the array is alive, and NumPy's header of it is read only.
    let (data, array_flags) = unsafe {
        let array = array.as_array_ptr();
        ((*array).fields.data, (*array).fields.flags)
    };
    Ok(Found {
        data: data.cast(),
        shape: array.shape().into(),
        strides: array.strides().into(),
        size: number.size(),
        number,
        writeable: array_flags & flags::NPY_ARRAY_WRITEABLE != 0,
        owner: array.clone().into_any(),
    })
}

/// DLPack's tensor, version 0: the layout that every library hands out when asked without a version.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// DLPack's codes: kinds of numbers, and the device that is this machine's memory.
const DL_INT: u8 = 0;
const DL_UINT: u8 = 1;
const DL_FLOAT: u8 = 2;
const DL_BFLOAT: u8 = 4;
const DL_CPU: i32 = 1;

fn from_dlpack<'py>(
    object: &Bound<'py, PyAny>,
    what: &'static str,
    kind: ErrorKind,
) -> PyResult<Found<'static, 'py>> {
    let fail = |message: String, help: &str| to_py(Error::new(kind, message).help(help));
    let class = object.get_type();
    let Ok(method) = object.getattr("__dlpack__") else {
        let message = format!("{what} of type {class}");
        return Err(fail(message, "give a NumPy array, or a tensor in this machine's memory (DLPack)"));
    };
    let owner = method.call0().map_err(|refused| {
        fail(format!("{what} of {class} that are not handed out: {refused}"), "see its message")
    })?;
    let capsule = owner.cast::<PyCapsule>()?;
    let tensor = capsule.pointer_checked(Some(c"dltensor"))?.cast::<DlTensor>();
    // SAFETY: a capsule of this name holds a managed tensor, whose first member is the tensor; it lives until the
    // capsule dies, which we neither rename nor let go of before the rows.
    let tensor = unsafe { tensor.as_ref() };
    if tensor.device_type != DL_CPU {
        let message = format!("{what} of {class} on device type {}", tensor.device_type);
        return Err(fail(message, "only this machine's memory is read: move it to the CPU"));
    }
    let number = match (tensor.code, tensor.bits, tensor.lanes) {
        (DL_FLOAT, 32, 1) => Number::F32,
        (DL_FLOAT, 16, 1) => Number::F16,
        (DL_BFLOAT, 16, 1) => Number::Bf16,
        (DL_INT, 32, 1) => Number::I32,
        (DL_UINT, 32, 1) => Number::U32,
        (DL_UINT, 16, 1) => Number::U16,
        (code, bits, lanes) => {
            let message = format!("{what} of {class} with DLPack type {code}, {bits} bits, {lanes} lanes");
            return Err(fail(message, accepted(kind)));
        }
    };
    let n = usize::try_from(tensor.dimensions).unwrap_or(0);
    if n == 0 || n > 2 || tensor.shape.is_null() {
        return Err(fail(format!("{what} of {n} dimensions"), "give one dimension, or two: rows"));
    }
    // SAFETY: DLPack: `shape` and, unless null, `strides` have one entry a dimension.
    let (shape, strides) = unsafe {
        let strides = (!tensor.strides.is_null()).then(|| std::slice::from_raw_parts(tensor.strides, n));
        (std::slice::from_raw_parts(tensor.shape, n), strides)
    };
    let shape: Vec<usize> = shape.iter().map(|&d| usize::try_from(d).unwrap_or(0)).collect();
    let size = number.size();
    let strides = match strides {
        Some(strides) => strides.iter().map(|&s| s as isize * size as isize).collect(),
        None if n == 1 => vec![size as isize],
        None => vec![(shape[1] * size) as isize, size as isize],
    };
    let data = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
    Ok(Found { data, shape: shape.into(), strides: strides.into(), size, number, writeable: true, owner })
}
