// Package playground serves a page on which people write snippets, run them by the server's
// POST /api/sandbox, and share links to them.
//
//	page ── bundle ── bin/prebuilt ── embedded into bin/gaol ── [Handler] ── browser
//
// The folder page has the source, in TypeScript. The command bundle makes [Files] of it, and `make
// build` embeds them by go build's flag -overlay. A plain `go build` has none; the handler then serves
// a page that says so.
//
// The files are the same for everyone and have no secret, so that they need no token. What protects
// the browser's user from what a snippet prints is the page, which shows it as text only, and the
// headers: a Content-Security-Policy without inline scripts and without connections to other servers,
// and Trusted Types, by which the browser refuses to parse text as HTML.
//
// # What it does not protect against
//
// An origin in [Options.FrameAncestors] can show the page in a frame, and can load a snippet into it.
// The person in front of it decides whether to run it.
package playground
