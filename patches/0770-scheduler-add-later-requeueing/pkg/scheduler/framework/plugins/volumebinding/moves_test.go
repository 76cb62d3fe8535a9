// SPDX-License-Identifier: Apache-2.0

package volumebinding

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestMoveAfterCaches adds and changes volumes and claims. Pods must be moved when the plugin's caches have them.
func TestMoveAfterCaches(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := fake.NewSimpleClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	binder := &volumeBinder{
		pvCache:  NewPVAssumeCache(factory.Core().V1().PersistentVolumes().Informer()),
		pvcCache: NewPVCAssumeCache(factory.Core().V1().PersistentVolumeClaims().Informer()),
	}
	moves := make(chan string)
	(&VolumeBinding{Binder: binder}).MoveAfterCaches(func(event framework.ClusterEvent) {
		version := "none"
		if event.Resource == framework.PersistentVolume {
			if volume, err := binder.pvCache.GetPV("a"); err == nil {
				version = volume.ResourceVersion
			}
		} else if claim, err := binder.pvcCache.GetPVC("ns/a"); err == nil {
			version = claim.ResourceVersion
		}
		moves <- event.Label + version
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "1"}}
	volumes, claims := client.CoreV1().PersistentVolumes(), client.CoreV1().PersistentVolumeClaims("ns")
	for _, step := range []struct {
		change func() error
		want   string
	}{
		{func() error { _, err := volumes.Create(ctx, volume, metav1.CreateOptions{}); return err }, "PvAdd1"},
		{func() error { _, err := claims.Create(ctx, claim, metav1.CreateOptions{}); return err }, "PvcAdd1"},
		{func() error {
			volume = volume.DeepCopy()
			volume.ResourceVersion = "2"
			_, err := volumes.Update(ctx, volume, metav1.UpdateOptions{})
			return err
		}, "PvUpdate2"},
		{func() error {
			claim = claim.DeepCopy()
			claim.ResourceVersion = "2"
			_, err := claims.Update(ctx, claim, metav1.UpdateOptions{})
			return err
		}, "PvcUpdate2"},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if got := <-moves; got != step.want {
			t.Errorf("pods are moved by %s, want %s", got, step.want)
		}
	}
}
