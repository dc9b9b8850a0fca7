// Package download implements the common part of downloading npm packages, Debian packages and
// layers: an HTTP transport that gives up on stalled servers, hash checks, and lines of progress.
//
// It does not retry: its callers do.
package download
