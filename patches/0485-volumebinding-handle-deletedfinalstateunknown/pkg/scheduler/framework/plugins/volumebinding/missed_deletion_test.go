// SPDX-License-Identifier: Apache-2.0

package volumebinding

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// If the watch was interrupted, an informer wraps the last known state of a deleted object.
func TestAssumeCacheForgetsVolumesWhoseDeletionWasMissed(t *testing.T) {
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", ResourceVersion: "1"}}
	volumes := NewAssumeCache(nil, "v1.PersistentVolume", "", nil).(*assumeCache)
	volumes.add(volume)

	volumes.delete(cache.DeletedFinalStateUnknown{Key: "pv", Obj: volume})

	if got, err := volumes.Get("pv"); err == nil {
		t.Errorf("the deleted volume is still there: %v", got)
	}
}
