mod exprs;
mod hostile;
mod laws;
mod machine;
mod masks;
mod syntaxes;
mod triggers;
