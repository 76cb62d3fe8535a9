// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"sync"
	"testing"
)

// TestReadersShareAQuantity has methods that only read, in goroutines that share quantities without their strings: the
// race detector finds a write.
func TestReadersShareAQuantity(t *testing.T) {
	// A sum has no string; the large one is a decimal.
	small, large := MustParse("1"), MustParse("18446744073709551617")
	small.Add(MustParse("2"))
	large.Add(MustParse("1"))
	var done sync.WaitGroup
	for i := 0; i < 2; i++ {
		done.Add(1)
		go func() {
			defer done.Done()
			if got := small.String() + " " + large.String(); got != "3 18446744073709551618" {
				t.Errorf("the strings are %s", got)
			}
			if small.Cmp(large) != -1 || large.Cmp(small) != 1 {
				t.Error("the small quantity is not the smaller one")
			}
			if _, err := small.Marshal(); err != nil {
				t.Error(err)
			}
		}()
	}
	done.Wait()
}
