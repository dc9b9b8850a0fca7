// Package playground serves a page on which people write snippets, run them by the server's
// POST /api/sandbox, and share links to them.
//
//	page ── make page ── built ── embedded into bin/gaol ── [Serve] ── browser
//
// The folder page contains the source, in TypeScript. `make page` bundles it by Node into the folder built,
// which is part of the repository: gaol is built without Node and without an npm registry. `make npm-test`
// fails if built does not match the source.
//
// The files are the same for everyone and contain no secrets, so that they need no token. Two things
// protect the browser's user from a snippet's output: the page, which shows it as text only, and the
// headers: a Content-Security-Policy without inline scripts and without connections to other servers,
// and Trusted Types, by which the browser refuses to parse text as HTML.
//
// # Not protected against
//
// An origin among the frameAncestors of [Serve] can show the page in a frame, and can load a snippet into it.
// The person in front of it decides whether to run it.
package playground
