// Package remote implements sandbox.Sandbox by an agent on the other side of a connection, which package agent describes.
// Policy, egress, host functions and limits stay on this side.
package remote
