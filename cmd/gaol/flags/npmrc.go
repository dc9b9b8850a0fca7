package flags

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"gaol/rootfs"
)

// registryAddresses returns the registries of npm's configuration and of single scopes, each as
// HOST:PORT, sorted: see [rootfs.NPMRegistries]. Results and errors contain no tokens and passwords. Hosts that only a
// registry's responses name, such as mirrors of packages, are not included.
func registryAddresses(project string) (addresses []string, err error) {
	registries, err := rootfs.NPMRegistries(project)
	if err != nil {
		return nil, err
	}
	for key, r := range registries {
		address, err := registryAddress(r.URL)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", key, r.From, err)
		}
		addresses = append(addresses, address)
	}
	slices.Sort(addresses)
	return slices.Compact(addresses), nil
}

var (
	errNotURL = errors.New("not an http or https URL")
	errLocal  = errors.New("on the host's localhost, which no guest reaches")
)

// registryAddress returns the host and port of a registry's URL. Its errors don't contain the URL.
func registryAddress(registry string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(registry))
	if err != nil {
		return "", errNotURL
	}
	host := strings.ToLower(u.Hostname())
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	if host == "" || port == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errNotURL
	}
	if a, err := netip.ParseAddr(host); host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		err == nil && (a.Unmap().IsLoopback() || a.IsUnspecified()) {
		return "", errLocal
	}
	return net.JoinHostPort(host, port), nil
}
