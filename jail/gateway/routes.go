package gateway

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// addRoutes makes every address one of lo's, in the thread's network namespace.
func addRoutes() error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := h.LinkSetUp(lo); err != nil {
		return err
	}
	for _, own := range []netip.Addr{guestV4, guestV6} {
		bits := own.BitLen()
		ip := net.IP(own.AsSlice())
		address := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(bits, bits)}, Flags: unix.IFA_F_NODAD}
		if err := h.AddrAdd(lo, address); err != nil {
			return err
		}
		all := &net.IPNet{IP: make(net.IP, len(ip)), Mask: net.CIDRMask(0, bits)}
		route := &netlink.Route{LinkIndex: lo.Attrs().Index, Dst: all, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST, Src: ip}
		if err := h.RouteAdd(route); err != nil {
			return err
		}
	}
	return nil
}
