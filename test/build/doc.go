// Package build tests what make build makes.
package build
