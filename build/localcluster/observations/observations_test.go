// SPDX-License-Identifier: Apache-2.0

package observations

import "testing"

// TestOneWaitsForWhatSeveralSee is for the race detector, too.
func TestOneWaitsForWhatSeveralSee(t *testing.T) {
	const things, each = 4, 1000
	o := New[int, int]()
	if known := o.Of(0); known != 0 {
		t.Errorf("%d is known of what was not seen", known)
	}
	for i := range 2 * things {
		go func() {
			for range each {
				o.Note(i%things, func(count *int) { *count++ })
			}
		}()
	}
	for thing := range things {
		// Were a token lost, this would wait for ever.
		for o.Of(thing) != 2*each {
			<-o.Changed()
		}
	}
}
