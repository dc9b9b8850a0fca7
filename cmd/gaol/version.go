package main

import (
	"fmt"
	goruntime "runtime"
)

// version is set by the Makefile with -ldflags -X.
var version = "devel"

func versionText() string {
	return fmt.Sprintf("%s (%s, %s/%s)", version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
}
