// Package commands tests programs of the guest that the host implements.
package commands
