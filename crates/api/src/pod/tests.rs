//! Case by case.
