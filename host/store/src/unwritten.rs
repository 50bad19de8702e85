//! Why rows could not be written: the error of what they were written to, whose kind says whether its reader went away.

use std::io;

use arrow::error::ArrowError;
use parquet::errors::ParquetError;

/// Out of an error of Arrow's writers.
pub fn of_arrow(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}

/// Out of an error of Parquet's writer.
pub fn of_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    }
}
