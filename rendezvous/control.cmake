# The I/O around the decisions: conductor, attendant, gRPC.
