mod batch;
mod log;
mod steps;
