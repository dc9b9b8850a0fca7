// Command bundle makes the files of the playground's page that `make build` embeds into gaol: see
// package playground.
//
//	bundle [-page DIR] [-downloads DIR] [-overlay FILE] DIR
//
//	package-lock.json ── npm packages, in a temporary folder ──┐
//	page/src ─────────────────────────────────────────────────┴─ esbuild ── DIR ── FILE
//
// It writes the files to DIR, and adds them to FILE, which is for the flag -overlay of go build. It
// must run in the repository.
//
// It needs neither Node nor npm: package rootfs/npm downloads the packages, from the registry that
// npm is configured to use, as for images. The lock file has their hashes. Packages that only the
// page's own tests use are not downloaded. Downloads are kept, so that the next build needs no
// network.
package main
