mod hostile;
mod laws;
mod masks;
