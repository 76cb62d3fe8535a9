// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
	"fmt"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// survivePanics keeps a plugin that panics in one of the framework's workers from ending the process, on which all pods
// depend. The worker ends, and its stack is logged; what it has not done is found out by verdicts and sums.
//
// Once only: the parallelizer says that a worker is done before its panic has been handled, which reads the variable.
var survivePanics = sync.OnceFunc(func() { utilruntime.ReallyCrash = false })

// errNotDone is what is said of a node that no worker came to the end with.
var errNotDone = errors.New("a plugin panicked; next: see the extender's log")

// withoutPanic does something, and makes an error of a panic.
func withoutPanic(do func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			klog.ErrorS(nil, "A plugin panicked", "reason", reason)
			err = fmt.Errorf("a plugin panicked: %v; next: see the extender's log", reason)
		}
	}()
	return do()
}
