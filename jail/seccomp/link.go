package seccomp

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// instruction is the kernel's struct sock_filter.
type instruction struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

const (
	instructionSize = 8
	jumpAlways      = unix.BPF_JMP | unix.BPF_JA
	returnConstant  = unix.BPF_RET | unix.BPF_K

	retTrace = 0x7ff0_0000 // SECCOMP_RET_TRACE; its data in the low 16 bits
)

// link puts args behind calls, and has every "guarded" of calls jump there. Jumps
// in the programs are relative, so that both keep theirs.
func link(calls, args []byte) ([]byte, error) {
	first, err := decode(calls)
	if err != nil {
		return nil, err
	}
	second, err := decode(args)
	if err != nil {
		return nil, err
	}
	if n := len(first) + len(second); n > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("%d instructions, the kernel takes %d", n, unix.BPF_MAXINSNS)
	}
	linked := 0
	for i, in := range first {
		if in.Code == returnConstant && in.K == retTrace|1 {
			first[i] = instruction{Code: jumpAlways, K: uint32(len(first) - i - 1)}
			linked++
		}
	}
	if linked == 0 { // then no argument would be looked at
		return nil, fmt.Errorf("no guarded call among %d instructions", len(first))
	}
	return encode(append(first, second...))
}

func decode(b []byte) ([]instruction, error) {
	p := make([]instruction, len(b)/instructionSize)
	if _, err := binary.Decode(b, binary.NativeEndian, p); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return p, nil
}

func encode(p []instruction) ([]byte, error) {
	b := make([]byte, len(p)*instructionSize)
	if _, err := binary.Encode(b, binary.NativeEndian, p); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b, nil
}
