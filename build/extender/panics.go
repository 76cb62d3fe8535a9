// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
	"fmt"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// survivePanics keeps the process running when a plugin panics in one of the framework's workers. The worker ends and
// its stack is logged; verdicts and sums detect the nodes that it has not finished.
//
// It runs once only, because the handler of an earlier panic may still read the variable when its worker is done.
var survivePanics = sync.OnceFunc(func() { utilruntime.ReallyCrash = false })

// errNotDone is the error of a node that no worker has finished.
var errNotDone = errors.New("a plugin panicked; next: see the extender's log")

// withoutPanic calls a function and returns a panic as an error.
func withoutPanic(do func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			klog.ErrorS(nil, "A plugin panicked", "reason", reason)
			err = fmt.Errorf("a plugin panicked: %v; next: see the extender's log", reason)
		}
	}()
	return do()
}
