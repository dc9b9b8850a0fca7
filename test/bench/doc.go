// Package bench measures what a sandbox costs beside starting bare Node with the
// same program, on the same machine and in the same minutes.
//
//	round ×N ──  bare │ create · first run · close │ bare │ later run
//	slice ×M ──  for 1, 2, 4 clients: bare … │ runs …
//
// The machines it runs on are shared, so that a time by itself says little. Bare
// and jailed samples take turns for that reason, so that drift hits both. A claim
// about speed is a ratio of their medians, never a time.
//
// Bare Node is the image's own binary, the same file on disk, started on the host
// through the image's own dynamic loader, so that the host needs none of its
// libraries. That costs what starting it directly does (measured: 26.7 against
// 26.7 ms, 29.4 against 29.6). A copy of the binary would not do, nor a chroot into
// one: copies differ by 3 to 4 ms, by how they came into the page cache. So the
// file must be the one that the jails start. The environment is minimal; the
// host's NODE_EXTRA_CA_CERTS alone would cost 26 ms.
//
// Even so, what else runs on the machine need not slow both down alike: bare Node
// is in the cpu cgroup of this process, and shares it with all that is there; a run
// is in one below the jails' parent, and shares that with other jails. Quote
// figures from a quiet machine.
//
// What it does not measure: the first start after the machine's, when nothing is
// cached, and the building of an image. Nor does it find a slowdown of Node
// itself, which is on both sides of every ratio.
package bench
