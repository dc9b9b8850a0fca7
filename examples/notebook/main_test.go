package main

import (
	"testing"

	"gaol/examples/internal/exampletest"
)

func TestExample(t *testing.T) { exampletest.Run(t, run) }
