// Package tier divides the tests. A test without a mark is in all tiers.
//
//	make test     go test -short: the tests without a mark; of long tables only a part
//	make soak     in full, the tests that begin with tier.Soak or tier.Alone
//	make test-fleet in full, the tests that begin with tier.Fleet, and those of fleets
//	make packages the tests that begin with tier.Packages
//	go test       everything
//
// The Makefile finds the marked tests in the source, so that the mark is the first statement of the test.
package tier
