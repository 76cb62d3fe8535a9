// SPDX-License-Identifier: Apache-2.0

package nodevolumelimits

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// switched is a handle with switches.
type switched struct {
	framework.Handle
	factory  informers.SharedInformerFactory
	switches framework.Switches
}

func (s *switched) SharedInformerFactory() informers.SharedInformerFactory { return s.factory }
func (s *switched) Switches() framework.Switches                           { return s.switches }

func TestRequireCSIDriver(t *testing.T) {
	claim := func(name, class, volume string) *v1.PersistentVolumeClaim {
		return &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       v1.PersistentVolumeClaimSpec{StorageClassName: &class, VolumeName: volume},
		}
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	csiNode := func(name string, drivers ...string) *storagev1.CSINode {
		node := &storagev1.CSINode{ObjectMeta: named(name)}
		for _, driver := range drivers {
			node.Spec.Drivers = append(node.Spec.Drivers, storagev1.CSINodeDriver{Name: driver})
		}
		return node
	}
	volume, local := &v1.PersistentVolume{ObjectMeta: named("volume")}, &v1.PersistentVolume{ObjectMeta: named("local")}
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "42"}
	factory := informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
	core, storage := factory.Core().V1(), factory.Storage().V1()
	for informer, objects := range map[cache.SharedInformer][]interface{}{
		core.PersistentVolumes().Informer(): {volume, local},
		core.PersistentVolumeClaims().Informer(): {
			claim("bound", "", "volume"), claim("local", "", "local"), claim("waits", "disk", ""), claim("path", "path", ""),
		},
		storage.StorageClasses().Informer(): {
			&storagev1.StorageClass{ObjectMeta: named("disk"), Provisioner: "disk.example.com"},
			&storagev1.StorageClass{ObjectMeta: named("path"), Provisioner: "example.com/local-path"},
		},
		storage.CSIDrivers().Informer(): {&storagev1.CSIDriver{ObjectMeta: named("disk.example.com")}},
		storage.CSINodes().Informer():   {csiNode("ready", "other.example.com", "disk.example.com"), csiNode("other", "other.example.com")},
	} {
		for _, object := range objects {
			_ = informer.GetStore().Add(object)
		}
	}
	pvc := func(name string) v1.VolumeSource {
		return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	for _, test := range []struct {
		name   string
		volume v1.VolumeSource
		needs  bool
	}{
		{"a bound claim", pvc("bound"), true},
		{"a claim that waits for its first pod", pvc("waits"), true},
		{"a claim of a provisioner without a CSIDriver", pvc("path"), false},
		{"a claim that is bound to another kind of volume", pvc("local"), false},
		{"a claim that does not exist is VolumeBinding's business", pvc("none"), false},
		{"an inline volume", v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "disk.example.com"}}, true},
		{"no volume of a driver", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := st.MakePod().Namespace("shop").Name("db-0").Obj()
			pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: test.volume}}
			for _, on := range []bool{false, true} {
				made, err := NewCSI(nil, &switched{factory: factory, switches: framework.Switches{RequireCSIDriver: on}}, feature.Features{})
				if err != nil {
					t.Fatal(err)
				}
				plugin := made.(*CSILimits)
				prepared := plugin.PrepareFilter(framework.NewCycleState(), pod)
				for _, name := range []string{"ready", "other", "without a CSINode"} {
					node := framework.NewNodeInfo()
					node.SetNode(st.MakeNode().Name(name).Obj())
					rejects := on && test.needs && name != "ready"
					if prepared == nil {
						if rejects {
							t.Error("the filter is left out")
						}
					} else if got := prepared(node).Code() == framework.UnschedulableAndUnresolvable; got != rejects {
						t.Errorf("switch %v, node %s: rejected %v, want %v", on, name, got, rejects)
					}
					// The filter of an extender or a stock framework is not prepared.
					status := plugin.Filter(context.Background(), nil, pod, node)
					if got := status.Message() == ErrReasonNoCSIDriver; got != rejects {
						t.Errorf("switch %v, node %s, not prepared: %v, want rejected %v", on, name, status, rejects)
					}
				}
				if retries := plugin.EventsToRegister()[0].ActionType&framework.Update != 0; retries != on {
					t.Errorf("switch %v: a registration retries the pod: %v", on, retries)
				}
			}
		})
	}
}
