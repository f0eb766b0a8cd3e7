//! Weights in whatever kind a file has them, times rows of floats. The only file that knows the tensor library's types.

use super::Stop;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{Device, Tensor};
use std::borrow::Cow;

/// A matrix of `rows` x `columns`; each row gives one value.
pub struct Matrix(QTensor);

impl Matrix {
    /// One that a file holds, if it has these sizes.
    pub fn new(tensor: QTensor, name: &str, rows: usize, columns: usize) -> Result<Self, String> {
        let dims = tensor.shape().dims();
        if dims != [rows, columns] {
            return Err(format!(
                "its tensor {name} is {dims:?} and not [{rows}, {columns}]"
            ));
        }
        Ok(Self(tensor))
    }

    /// Of floats as they lie in a file.
    pub fn floats(bytes: &[u8], rows: usize, columns: usize) -> Result<Self, String> {
        let storage = QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, GgmlDType::F32);
        let tensor = storage.and_then(|storage| QTensor::new(storage, (rows, columns)));
        tensor.map(Self).map_err(|error| error.to_string())
    }

    /// The products with each row of `x`.
    pub fn times(&self, x: &[f32]) -> Result<Vec<f32>, Stop> {
        let (_, columns) = self.0.shape().dims2()?;
        let x = Tensor::from_slice(x, (x.len() / columns, columns), &Device::Cpu)?;
        Ok(x.apply_op1_no_bwd(&self.0)?.flatten_all()?.to_vec1()?)
    }

    /// These rows, one after the other.
    pub fn rows(&self, ids: &[u32]) -> Result<Vec<f32>, Stop> {
        let ids = Tensor::from_slice(ids, ids.len(), &Device::Cpu)?;
        Ok(self.0.embedding(&ids)?.flatten_all()?.to_vec1()?)
    }
}

/// All values of a tensor as floats.
pub fn values(tensor: &QTensor) -> Result<Vec<f32>, String> {
    let read = || tensor.dequantize(&Device::Cpu)?.flatten_all()?.to_vec1();
    read().map_err(|error: candle_core::Error| error.to_string())
}

/// Whether there are only slow kernels for this kind of blocks.
pub fn is_slow(kind: GgmlDType) -> bool {
    matches!(
        kind,
        GgmlDType::Q4_1 | GgmlDType::Q5_0 | GgmlDType::Q5_1 | GgmlDType::Q8_1
    )
}

/// The same values in blocks that are computed fast, where the file's are not.
pub fn quickened(tensor: QTensor) -> Result<QTensor, String> {
    if !is_slow(tensor.dtype()) {
        return Ok(tensor);
    }
    let anew = || QTensor::quantize(&tensor.dequantize(&Device::Cpu)?, GgmlDType::Q8_0);
    anew().map_err(|error| error.to_string())
}

impl From<candle_core::Error> for Stop {
    fn from(error: candle_core::Error) -> Self {
        Self::Failed(format!("the model cannot be computed: {error}"))
    }
}
