// Package npm downloads Node and npm from an npm registry and unpacks them.
//
//	NewClient ── Resolve ── Package ── Tarball ── Unpack
//
// The registry is $npm_config_registry, the registry line of ~/.npmrc, or the public one.
// [Pins] hold known hashes: the registry is not trusted for a pinned version, and is trusted
// for the hash of any other. No download is parsed before its hash has been checked.
//
// It does not install packages: it resolves no dependencies and runs no scripts.
//
// It does not protect against a registry that serves a malicious release of a version
// without a pin.
package npm
