// Package node knows what a Node process reads when it starts: V8's heap flags and the
// environment variables that take effect only then.
package node
