// Package download has what the downloads of npm packages, Debian packages and layers share:
// an HTTP transport that gives up on stalled servers, hash checks, and progress reports.
//
// It does not retry: its callers do.
package download
