// Package wire is the protocol between a run of Node and its host: how calls of host
// functions, values, console lines and errors cross from one to the other. The guest's
// half is runtime/internal/guest/wire.cjs; testdata/frames.json has frames that both halves are
// tested with.
//
//	descriptor 3, guest -> host        descriptor 5, host -> guest
//
//	 1 value    JSON                   16 answer     u32 call | u8 failed | JSON
//	 2 log      u8 level | text        17 cell       u32 cell | JSON object
//	 3 call     u32 call | u32 function | JSON array
//	 4 failure  JSON object: Failure   18 interrupt  u32 cell
//	 5 done     u32 cell
//	 6 ask      as call: the guest does nothing else until the answer is there
//	 7 no value text: why the value of a last expression has no JSON
//
// Each is a frame: u32 n | u8 kind | n - 1 bytes. Integers are big-endian, text and JSON
// are UTF-8. Both descriptors are pipes: a guest gets no socket whose other end is the
// host's.
//
//	guest                                 host
//	call 1 (function 0, [..])  ------->   the function runs
//	          <-------  answer 1          a value, or what an Error is made of
//	call 2, call 3             ------->   both run
//	          <-------  answer 3, answer 2
//	ask 4                      ------->   it runs
//	          <-------  answer 4          before this there is no other frame
//	log, log, value            ------->
//	the end of the descriptor  ------->   the run has ended
//
// Answers come in any order. The guest picks the numbers of calls: one that has no
// answer yet must not be used again. In a context the guest waits for cells, one at a
// time, and each ends with done, also when it was interrupted: runtime/internal/guest/context.cjs
// draws what a cell has. With the end of cell 0 it says that it is ready.
//
//	done 0                     ------->
//	          <-------  cell 1
//	log, call, value           ------->
//	done 1                     ------->   another may come
//	          <-------  cell 2
//	          <-------  interrupt 2       its time is up
//	done 2                     ------->
//
// What comes from a guest is hostile. A [Reader] takes no frame whose kind the guest has
// no business to send, or that is longer than its kind may be, before anything of that
// length is kept; the Parse functions take nothing but what is drawn above. After an
// error there is no way to find the next frame: the reading is over. Nothing here says
// whether what a guest claims is true.
//
// The version stands in the head of the program (see runtime/program.go), and the guest
// refuses another: both halves are of one gaol, so that this finds mistakes only.
package wire
