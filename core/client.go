package core

import "net/netip"

// ClientOf returns the address under which whoever sends from an address is counted by limits: an IPv4 address itself, of an IPv6 address its first 64 bits
// with the others zero. Providers hand out whole /64 networks, so that who has one address of it has them all. An IPv4 address that is written as IPv6 is IPv4.
func ClientOf(from netip.Addr) netip.Addr {
	from = from.Unmap().WithZone("")
	if from.Is6() {
		if network, err := from.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return from
}

// ClientName is ClientOf for a text, which is returned as it is when it holds no address. Of an IPv6 network it is the prefix, 2001:db8::/64.
func ClientName(from string) string {
	addr, err := netip.ParseAddr(from)
	if err != nil {
		return from
	}
	addr = ClientOf(addr)
	if addr.Is6() {
		return addr.String() + "/64"
	}
	return addr.String()
}
