// Package wire is the protocol between a run of Node and its host: it encodes calls of
// host functions, values, console lines and errors. The guest's half is
// runtime/internal/guest/wire.cjs; testdata/frames.json has frames with which both halves are
// tested.
//
//	descriptor 3, guest -> host        descriptor 5, host -> guest
//
//	 1 value    JSON                   16 answer     u32 call | u8 failed | JSON
//	 2 log      u8 level | text        17 cell       u32 cell | JSON object
//	 3 call     u32 call | u32 function | JSON array
//	 4 failure  JSON object: Failure   18 interrupt  u32 cell
//	 5 done     u32 cell
//	 7 no value text: why the value of the last expression cannot be encoded as JSON
//	 8 output   u8 stream | bytes that the program has written to it, in one order with log
//	 9 translate u32 call | u8 format | path NUL tsconfig.json NUL source: the answer has {code, module}
//
// Each is a frame: u32 n | u8 kind | n - 1 bytes. Integers are big-endian, text and JSON
// are UTF-8. Both descriptors are pipes: a guest never gets a socket that is connected to
// the host.
//
//	guest                                 host
//	call 1 (function 0, [..])  ------->   the function runs
//	          <-------  answer 1          a value, or the fields of an Error
//	call 2, call 3             ------->   both run
//	          <-------  answer 3, answer 2
//	call 4, synchronous        ------->   it runs
//	          <-------  answer 4          the guest sends no frame before this
//	log, log, value            ------->
//	end of file                ------->   the run has ended
//
// Answers arrive in any order. The guest chooses the numbers of calls, and must not reuse the
// number of an unanswered call. In a context, the guest waits for cells, one at a time, and
// ends each with done, even when it was interrupted: runtime/internal/guest/context.cjs shows the
// life cycle of a cell. With done for cell 0 it signals that it is ready.
//
//	done 0                     ------->
//	          <-------  cell 1
//	log, call, value           ------->
//	done 1                     ------->   ready for the next
//	          <-------  cell 2
//	          <-------  interrupt 2       its time is up
//	done 2                     ------->
//
// Everything that a guest sends is hostile. A [Reader] rejects frames of a kind that the
// guest must not send, and frames longer than their kind allows, before it allocates that
// length; the Parse functions accept only the formats above. After an error the next frame
// cannot be found, so that reading stops. Nothing here verifies that a guest's claims are
// true.
//
// The head of the program contains the version (runtime/internal/guest/guest.go), and
// the guest rejects any other: both halves are from the same gaol, so that this only finds
// mistakes.
package wire
