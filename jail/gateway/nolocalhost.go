package gateway

import (
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// DenyLocalhost drops all packets to localhost, TCP and UDP, that sockets of a v2 cgroup send or
// would receive. The cgroup holds the program until it is removed.
func DenyLocalhost(cgroup *os.File) error {
	for _, attach := range []ebpf.AttachType{ebpf.AttachCGroupInetEgress, ebpf.AttachCGroupInetIngress} {
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: "gaol_nolocal", Type: ebpf.CGroupSKB, AttachType: attach, License: "MIT", Instructions: notToLocalhost(),
		})
		if err != nil {
			return bpfError("program", err)
		}
		err = link.RawAttachProgram(link.RawAttachProgramOptions{
			Target: int(cgroup.Fd()), Program: program, Attach: attach, Flags: unix.BPF_F_ALLOW_MULTI,
		})
		_ = program.Close() // the cgroup holds a reference
		if err != nil {
			return bpfError("program of a cgroup", err)
		}
	}
	return nil
}

// notToLocalhost returns a program that decides by a packet's destination. The packet begins
// with its IP header.
func notToLocalhost() asm.Instructions {
	const (
		offEtherType = 16 // in struct __sk_buff
		destination4 = 16 // in the header of IPv4
		destination6 = 24 // and of IPv6
		etherIPv4    = 0x0800
		etherIPv6    = 0x86dd
	)
	code := asm.Instructions{
		asm.Mov.Reg(ctx, asm.R1),
		asm.LoadMem(asm.R2, ctx, offEtherType, asm.Word),
		asm.HostTo(asm.BE, asm.R2, asm.Half),
		asm.JEq.Imm(asm.R2, etherIPv4, "v4"),
		asm.JEq.Imm(asm.R2, etherIPv6, "v6"),
		asm.Ja.Label("drop"),
	}
	code = append(code, loadBytes("v4", destination4, 4)...)
	code = append(code,
		asm.LoadMem(asm.R2, asm.RFP, -16, asm.Byte),
		asm.JEq.Imm(asm.R2, 127, "drop"),
		asm.Ja.Label("pass"),
	)
	code = append(code, loadBytes("v6", destination6, 16)...)
	code = append(code, unlessLoopback6("address6", asm.RFP, -16, "pass")...)
	return append(append(code, asm.Ja.Label("drop")), verdicts()...)
}

// loadBytes returns the part that copies up to 16 bytes of the packet to the stack.
func loadBytes(symbol string, offset, size int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, ctx).WithSymbol(symbol),
		asm.Mov.Imm(asm.R2, offset),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, -16),
		asm.Mov.Imm(asm.R4, size),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
	}
}
