// Package playground tests the playground: the requests that reach it, and its page in Debian's
// Chromium, against a server in a separate process.
//
// The browser is started once, and connects to 127.0.0.1 only. Each test uses its own profile. A
// test fails if the page causes an exception or an error in the console, such as a violation of its
// Content-Security-Policy, that it does not expect.
//
// GAOL_TEST_SCREENSHOTS=docs replaces the pictures of the documentation.
package playground
