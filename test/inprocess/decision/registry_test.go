// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// TestCarriedPluginsAreRegistered: what generated code sets is what a configuration can name, beside what is given; and
// what the tree registers itself is not registered twice.
func TestCarriedPluginsAreRegistered(t *testing.T) {
	factory := func(runtime.Object, framework.Handle) (framework.Plugin, error) {
		return nil, errors.New("not made in this test")
	}
	before := addCarried
	defer func() { addCarried = before }()
	addCarried = func(registry frameworkruntime.Registry) error { return registry.Register("Carried", factory) }
	got := registry(t, frameworkruntime.Registry{"Given": factory, "NodeName": factory})
	for name, want := range map[string]bool{"Carried": true, "Given": true, "NodeName": false} {
		if _, ok := got[name]; ok != want {
			t.Errorf("%s is added: %v, want %v", name, ok, want)
		}
	}
}
