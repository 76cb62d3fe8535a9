// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// Lasts is the annotation of a pod with how long it runs in PodStages.
const Lasts = "test/lasts"

// PodStages returns KWOK's stages of pods, instead of its own: they run at once, and end after the time in the annotation
// Lasts, if they have it. ended has further lines of the status of a pod that has ended, and gone a line of the stage in
// which a deleted pod goes; both may be empty.
func PodStages(ended, gone string) string { return fmt.Sprintf(podStages, Lasts, ended, gone) }

const podStages = `---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: runs}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
      - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
      - {key: .status.phase, operator: In, values: [Pending]}
  next:
    statusTemplate: |
      phase: Running
      startTime: {{ Now | Quote }}
      conditions:
        - {type: Ready, status: "True", lastTransitionTime: {{ Now | Quote }}}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: ends}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
      - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
      - {key: .status.phase, operator: In, values: [Running]}
      - {key: '.metadata.annotations["%[1]s"]', operator: Exists}
  delay: {durationMilliseconds: 60000, durationFrom: {expressionFrom: '.metadata.annotations["%[1]s"]'}}
  next:
    statusTemplate: |
      phase: Succeeded%[2]s
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: goes}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions: [{key: .metadata.deletionTimestamp, operator: Exists}]
  %[3]s
  next: {delete: true}
`
