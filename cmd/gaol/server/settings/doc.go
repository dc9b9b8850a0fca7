// Package settings reads the configuration file of gaol serve.
package settings
