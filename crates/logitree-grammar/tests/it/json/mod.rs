pub mod data;
mod format;
mod frames;
mod load;
mod random;
