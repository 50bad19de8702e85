"""Messages of the package weir.v1, generated from proto/weir/v1; their comments are in the .proto files."""
