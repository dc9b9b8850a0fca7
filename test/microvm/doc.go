// Package microvm tests sandboxes in virtual machines. Without KVM each takes seconds to boot, so that most tests share one.
package microvm
