// Package registry opens images in registries, for imports: [rootfs.ImportOptions].Registry. Credentials
// come from docker login, or from [Client].Keychain.
//
// It is apart from package oci because it links Docker's configuration and a client of registries,
// which programs that only run sandboxes do not need.
//
// Servers are not trusted: documents are bounded, and their digests are checked. Plain http is used only for
// this host's loopback interface, and a registry elsewhere cannot redirect there.
package registry
