// Package mux carries streams on one connection, such as the serial port of a virtual machine. One side opens the streams,
// the other one accepts them.
//
//	u8 kind | u32 stream | u32 length | bytes of that length
//
//	1 open             a new stream; its numbers rise
//	2 data             at most [MaxData] bytes
//	3 credit  u32      bytes that the receiver has processed
//	4 end              the sender writes no more
//	5 stop             the sender reads no more: it drops later data
//	6 reset            both, and data that the receiver has not read yet is lost
//
// A sender may begin each direction of a stream with [Window] bytes; the receiver returns credit for bytes that were read. So a side
// buffers at most a window for each stream, a stream without a reader does not block others, and frames
// of the other side never make this one write. The other side may be hostile: a frame that is not allowed ends the session.
package mux
