"""What weft keeps: pictures by digest (`blobs`) and every call, reply and verdict (`journal`)."""
