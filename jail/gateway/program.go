package gateway

import (
	"encoding/binary"
	"net/netip"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Offsets in struct bpf_sk_lookup, see linux/bpf.h.
const (
	offFamily     = 8
	offProtocol   = 12
	offRemoteIP4  = 16
	offRemoteIP6  = 20
	offRemotePort = 36 // in network byte order
	offLocalIP4   = 40
	offLocalIP6   = 44
	offLocalPort  = 60 // in host byte order
)

// The registers that the program keeps its arguments in.
const (
	ctx      = asm.R6
	port     = asm.R7
	protocol = asm.R8
	listener = asm.R9
)

// lookup returns the program. The kernel calls it for a packet that belongs to no
// connection, before it looks for a listening or unconnected socket. Listeners is the map
// with the host's listener, dialed the map of the host's source ports.
func lookup(c Config, listeners, dialed int) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Reg(ctx, asm.R1),
		asm.LoadMem(port, ctx, offLocalPort, asm.Word),
		asm.LoadMem(protocol, ctx, offProtocol, asm.Word),
		asm.LoadMem(asm.R2, ctx, offFamily, asm.Word),
		asm.JEq.Imm(asm.R2, unix.AF_INET6, "v6"),
	}
	code = append(code, destination()...)
	code = append(code, localhost(c, dialed)...)
	return append(code, outside(listeners)...)
}

// destination returns the part that jumps to localhost, outside, pass or drop.
func destination() asm.Instructions {
	code := asm.Instructions{
		// The resolver's replies, to whichever address the guest sent from.
		asm.LoadMem(asm.R2, ctx, offRemoteIP4, asm.Word),
		asm.HostTo(asm.BE, asm.R2, asm.Word),
		asm.JNE.Imm(asm.R2, resolverInt(), "v4"),
		asm.LoadMem(asm.R2, ctx, offRemotePort, asm.Half),
		asm.HostTo(asm.BE, asm.R2, asm.Half),
		asm.JEq.Imm(asm.R2, 53, "pass"),

		asm.LoadMem(asm.R2, ctx, offLocalIP4, asm.Word).WithSymbol("v4"),
		asm.HostTo(asm.BE, asm.R2, asm.Word),
		asm.JEq.Imm(asm.R2, resolverInt(), "resolver"),
		asm.RSh.Imm(asm.R2, 24),
		asm.JEq.Imm(asm.R2, 127, "localhost"),
		asm.Ja.Label("outside"),

		asm.JEq.Imm(port, 53, "pass").WithSymbol("resolver"),
		asm.Ja.Label("drop"),
	}
	return append(code, unlessLoopback6("v6", ctx, offLocalIP6, "outside")...)
}

// unlessLoopback6 returns the part that jumps to a label unless the address at base is ::1. It overwrites R3 and R4.
func unlessLoopback6(symbol string, base asm.Register, address int16, label string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R3, base, address, asm.Word).WithSymbol(symbol),
		asm.LoadMem(asm.R4, base, address+4, asm.Word),
		asm.Or.Reg(asm.R3, asm.R4),
		asm.LoadMem(asm.R4, base, address+8, asm.Word),
		asm.Or.Reg(asm.R3, asm.R4),
		asm.JNE.Imm(asm.R3, 0, label),
		asm.LoadMem(asm.R3, base, address+12, asm.Word),
		asm.HostTo(asm.BE, asm.R3, asm.Word),
		asm.JNE.Imm(asm.R3, 1, label),
	}
}

// outside returns the part that assigns TCP to the host's listener, and the end.
func outside(listeners int) asm.Instructions {
	code := asm.Instructions{
		asm.JNE.Imm(protocol, unix.IPPROTO_TCP, "drop").WithSymbol("outside"),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, listeners),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.Mov.Reg(listener, asm.R0),
		asm.Mov.Reg(asm.R1, ctx),
		asm.Mov.Reg(asm.R2, listener),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnSkAssign.Call(),
		asm.Mov.Reg(ctx, asm.R0), // 0 or a negative errno
		asm.Mov.Reg(asm.R1, listener),
		asm.FnSkRelease.Call(),
		asm.JNE.Imm(ctx, 0, "drop"),
	}
	return append(code, verdicts()...)
}

// verdicts returns the end of a program, which begins with pass.
func verdicts() asm.Instructions {
	const skDrop, skPass = 0, 1 // enum sk_action in linux/bpf.h
	return asm.Instructions{
		asm.Mov.Imm(asm.R0, skPass).WithSymbol("pass"),
		asm.Return(),
		asm.Mov.Imm(asm.R0, skDrop).WithSymbol("drop"),
		asm.Return(),
	}
}

// localhost returns the part for the loopback addresses. It jumps to pass or drop.
func localhost(c Config, dialed int) asm.Instructions {
	datagram := "drop"
	if c.UDP {
		datagram = "pass"
	}
	code := asm.Instructions{asm.JNE.Imm(protocol, unix.IPPROTO_TCP, datagram).WithSymbol("localhost")}
	for _, p := range c.Host {
		code = append(code, asm.JEq.Imm(port, int32(p), "forwarded"))
	}
	for _, r := range c.TCP {
		code = append(code,
			asm.JLT.Imm(port, int32(r.First), "host"), // the ranges are in order
			asm.JLE.Imm(port, int32(r.Last), "pass"),
		)
	}
	code = append(code, fromHost(dialed)...)
	if len(c.Host) > 0 {
		code = append(code, forwarded()...)
	}
	return code
}

// forwarded returns the part for ports of the host. It lets connections to 127.0.0.1 and ::1 pass, where
// the host listens.
func forwarded() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R2, ctx, offFamily, asm.Word).WithSymbol("forwarded"),
		asm.JEq.Imm(asm.R2, unix.AF_INET6, "pass"), // only ::1 is local
		asm.LoadMem(asm.R2, ctx, offLocalIP4, asm.Word),
		asm.HostTo(asm.BE, asm.R2, asm.Word),
		asm.JEq.Imm(asm.R2, 127<<24|1, "pass"),
		asm.Ja.Label("drop"),
	}
}

// fromHost returns the instructions that pass connections of the host, whose source is a port of
// 127.0.0.1 or ::1 in dialed. No other socket can have that address and port.
func fromHost(dialed int) asm.Instructions {
	code := asm.Instructions{
		asm.LoadMem(asm.R2, ctx, offRemotePort, asm.Half).WithSymbol("host"),
		asm.HostTo(asm.BE, asm.R2, asm.Half),
		asm.LoadMem(asm.R3, ctx, offFamily, asm.Word),
		asm.JEq.Imm(asm.R3, unix.AF_INET6, "host6"),
		asm.LoadMem(asm.R3, ctx, offRemoteIP4, asm.Word),
		asm.HostTo(asm.BE, asm.R3, asm.Word),
		asm.JNE.Imm(asm.R3, 127<<24|1, "drop"),
		asm.Ja.Label("find"),
	}
	code = append(code, unlessLoopback6("host6", ctx, offRemoteIP6, "drop")...)
	return append(code,
		asm.Or.Imm(asm.R2, dialed6),

		asm.StoreMem(asm.RFP, -4, asm.R2, asm.Word).WithSymbol("find"),
		asm.LoadMapPtr(asm.R1, dialed),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JNE.Imm(asm.R0, 0, "pass"),
		asm.Ja.Label("drop"),
	)
}

// resolverInt returns the resolver's address as an operand.
func resolverInt() int32 { return int32(binary.BigEndian.Uint32(Resolver.AsSlice())) }

// loopback is the index of lo in every network namespace: LOOPBACK_IFINDEX in the kernel.
const loopback = 1

// addRoutes makes every address one of lo's, in the thread's network namespace.
func addRoutes() error {
	if err := raiseLoopback(); err != nil {
		return err
	}
	for _, own := range []netip.Addr{guestV4, guestV6} {
		if err := addAddress(own); err != nil {
			return err
		}
		ip, family := own.AsSlice(), nl.GetIPFamily(own.AsSlice())
		all := nl.NewRtMsg() // no destination: a route to all addresses
		all.Family, all.Table, all.Scope, all.Type = uint8(family), unix.RT_TABLE_LOCAL, unix.RT_SCOPE_HOST, unix.RTN_LOCAL
		if err := change(unix.RTM_NEWROUTE, unix.NLM_F_CREATE, all, nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(loopback)), nl.NewRtAttr(unix.RTA_PREFSRC, ip)); err != nil {
			return err
		}
	}
	return nil
}

// addAddress adds an address to lo in the thread's network namespace.
func addAddress(own netip.Addr) error {
	ip := own.AsSlice()
	address := nl.NewIfAddrmsg(nl.GetIPFamily(ip))
	address.Index, address.Prefixlen, address.Flags = loopback, uint8(own.BitLen()), unix.IFA_F_NODAD
	return change(unix.RTM_NEWADDR, unix.NLM_F_CREATE, address, nl.NewRtAttr(unix.IFA_LOCAL, ip), nl.NewRtAttr(unix.IFA_ADDRESS, ip))
}

// raiseLoopback brings up lo in the thread's network namespace.
func raiseLoopback() error {
	lo := nl.NewIfInfomsg(unix.AF_UNSPEC)
	lo.Index, lo.Flags, lo.Change = loopback, unix.IFF_UP, unix.IFF_UP
	return change(unix.RTM_NEWLINK, 0, lo)
}

// change sends a request of rtnetlink in the thread's network namespace.
func change(kind, flags int, data ...nl.NetlinkRequestData) error {
	req := nl.NewNetlinkRequest(kind, flags|unix.NLM_F_ACK)
	for _, d := range data {
		req.AddData(d)
	}
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

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
