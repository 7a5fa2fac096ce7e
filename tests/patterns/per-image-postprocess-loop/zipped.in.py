# at: for box, score in zip(
# fix: unsafe
def to_json(detections):
    found = []
    for box, score in zip(detections.boxes, detections.scores):
        x1, y1, x2, y2 = box.cpu().numpy().tolist()
        found.append({"box": [x1, y1, x2 - x1, y2 - y1], "score": round(float(score), 3)})
    return found
