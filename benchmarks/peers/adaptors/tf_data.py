#!/usr/bin/env python3
"""tf.data: sample_distorted_bounding_box, decode_and_crop_jpeg, an antialiased resize.

As https://www.tensorflow.org/guide/data_performance and TensorFlow's ImageNet examples have it: shuffle, repeat, map with
AUTOTUNE and deterministic=False, batch, prefetch(AUTOTUNE); the crop's window is decoded only. --workers are
private_threadpool_size.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

import protocol

given = protocol.image_arguments(__doc__)
paths, labels = protocol.photos(given.data)
mean = 255 * tf.constant(protocol.mean)
deviation = 255 * tf.constant(protocol.deviation)


def load(path, label):
    jpeg = tf.io.read_file(path)
    begin, extent, _box = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(jpeg),
        bounding_boxes=tf.zeros((1, 0, 4)),
        area_range=protocol.crop_area,
        aspect_ratio_range=protocol.crop_aspect,
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.stack([begin[0], begin[1], extent[0], extent[1]])
    pixels = tf.image.decode_and_crop_jpeg(jpeg, window, channels=3)
    pixels = tf.image.resize(pixels, (protocol.size, protocol.size), method="bilinear", antialias=True)
    pixels = tf.image.random_flip_left_right(pixels)
    pixels = (pixels - mean) / deviation
    return tf.transpose(pixels, (2, 0, 1)), label


options = tf.data.Options()
options.deterministic = False
options.threading.private_threadpool_size = given.workers
options.threading.max_intra_op_parallelism = 1
photos = (
    tf.data.Dataset.from_tensor_slices((paths, labels))
    .shuffle(len(paths))
    .repeat()
    .map(load, num_parallel_calls=tf.data.AUTOTUNE)
    .batch(given.batch_size)
    .prefetch(tf.data.AUTOTUNE)
    .with_options(options)
)
protocol.measure_images(
    given,
    (pixels for pixels, _labels in photos),
    versions={"tensorflow": tf.__version__},
    settings=f"private_threadpool_size={given.workers}, max_intra_op_parallelism=1, AUTOTUNE, deterministic=False, antialias",
)
