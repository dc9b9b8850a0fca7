// Package permissions tests that the npm package translates secure-exec's permissions to gaol's. Its own
// tests record random permissions in gaol's language, and what secure-exec decides; the tests here ask
// package policy the same.
package permissions
