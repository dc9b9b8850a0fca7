// Package permissions tests that the kernel enforces the permissions of a policy against
// JavaScript and native code, and that programs see the errors that the documentation
// promises.
//
//	fs_*_test.go      files: rules, paths around them, mounts, presets
//	fuzz*_test.go     random sets of permissions against a model of the kernel
//	denials_test.go   how Result.Denials reports denied operations
//
// A test of a rule also shows that the same program succeeds without it.
package permissions
